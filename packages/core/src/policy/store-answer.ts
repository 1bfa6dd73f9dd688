import type { Answer, Batch, Mode, Store } from '../store/store.ts'

/** Transforms a result of the store, synchronously or as a promise, as the store returned it. */
export function whenAnswered<M extends Mode, A, T>(
  store: Store<M>,
  answer: Answer<M, A>,
  then: (value: A) => T,
): Answer<M, T> {
  if (store.mode === 'sync') return then(answer as A) as Answer<M, T>
  return (answer as Promise<A>).then(then) as Answer<M, T>
}

/** Decides several batches separately; on a remote store all at once. */
export function decideEach<M extends Mode>(store: Store<M>, batches: readonly Batch[]): Answer<M, readonly Batch[]> {
  if (store.mode === 'sync') {
    for (const batch of batches) store.decide(batch)
    return batches as Answer<M, readonly Batch[]>
  }
  return Promise.all(batches.map((batch) => store.decide(batch) as Promise<void>)).then(() => batches) as Answer<
    M,
    readonly Batch[]
  >
}
