import type { Limit } from '../rule/limit.ts'
import type { Answer, Mode, Receipt, Settlement, Store } from '../store/store.ts'

/** Called when units may have come back. */
type Listener = () => void

/** Listeners for units of a store in this process, by rule and key. */
const listenersOf = new WeakMap<Store, Map<string, Set<Listener>>>()

/** A counter. */
interface Counter {
  readonly limit: Pick<Limit, 'rule'>
  readonly key: string
}

/**
 * Calls `listener` whenever this process returns units of one of these counters. Other processes are not observed.
 * Returns a function that unsubscribes.
 */
export function onRelease(store: Store, counters: readonly Counter[], listener: Listener): () => void {
  let listeners = listenersOf.get(store)
  if (listeners === undefined) {
    listeners = new Map()
    listenersOf.set(store, listeners)
  }
  const names = new Set(counters.map(nameOf))
  for (const name of names) {
    const waiting = listeners.get(name) ?? new Set()
    listeners.set(name, waiting.add(listener))
  }
  return () => {
    for (const name of names) {
      const waiting = listeners.get(name)
      waiting?.delete(listener)
      if (waiting?.size === 0) listeners.delete(name)
    }
  }
}

/** Settles a charge, and notifies listeners if that returns units. */
export function settle<M extends Mode>(
  store: Store<M>,
  receipt: Receipt,
  actuals: readonly number[],
): Answer<M, Settlement> {
  const wake = ({ corrected }: Settlement): void => {
    if (corrected < 0) wakeWaiting(store, receipt.charges)
  }
  return heard(store, store.settle(receipt, actuals), wake)
}

/** Resets counters of a key, and notifies listeners. */
export function reset<M extends Mode>(store: Store<M>, limits: readonly Limit[], key: string): Answer<M, void> {
  const counters = limits.map((limit) => ({ limit, key }))
  return heard(store, store.reset(limits, key), () => wakeWaiting(store, counters))
}

/** Lifts a block, and notifies listeners. */
export function unblock<M extends Mode>(store: Store<M>, rule: string, key: string): Answer<M, void> {
  return heard(store, store.block(rule, key, 0), () => wakeWaiting(store, [{ limit: { rule }, key }]))
}

/** Passes a result on, and calls `then` with it. */
function heard<M extends Mode, T>(store: Store<M>, answer: Answer<M, T>, then: (value: T) => void): Answer<M, T> {
  if (store.mode === 'sync') then(answer as T)
  // The caller learns of a failure from the result itself.
  else (answer as Promise<T>).then(then, () => undefined)
  return answer
}

function wakeWaiting(store: Store, counters: readonly Counter[]): void {
  const listeners = listenersOf.get(store)
  if (listeners === undefined || listeners.size === 0) return
  const woken = new Set(counters.flatMap((counter) => [...(listeners.get(nameOf(counter)) ?? [])]))
  for (const listener of woken) listener()
}

/** The names of rules have no spaces. */
function nameOf({ limit, key }: Counter): string {
  return `${limit.rule} ${key}`
}
