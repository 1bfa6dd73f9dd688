import type { DocumentTable, StoredDocument } from '@sluice/config-store'
import type { Sleep } from '@sluice/runtime'

/** One document that all nodes share. Calls reject when it cannot be reached. */
export interface SharedDocument {
  read(): Promise<StoredDocument | undefined>
  /** False when another revision is there: nothing was changed then. */
  write(body: string, revision: number): Promise<boolean>
}

/** Longer ones count as not answered. */
const CALL_MS = 3000

/** A document of `table`. No call takes longer than three seconds, and none is made while an earlier one has not come back. */
export function sharedDocument(table: DocumentTable, name: string, sleep: Sleep): SharedDocument {
  let pending: Promise<unknown> | undefined
  const inTime = async <T>(call: () => Promise<T>): Promise<T> => {
    if (pending !== undefined) throw new Error('an earlier call has not come back')
    const calling = call()
    const settled = calling
      .catch(() => undefined)
      .then(() => {
        if (pending === settled) pending = undefined
      })
    pending = settled
    const ended = new AbortController()
    const late = sleep(CALL_MS, ended.signal).then(
      () => Promise.reject(new Error(`no answer in ${CALL_MS} ms`)),
      () => calling,
    )
    try {
      return await Promise.race([calling, late])
    } finally {
      ended.abort()
      // Whichever comes second has nobody left to tell.
      late.catch(() => undefined)
    }
  }
  return {
    read: () => inTime(() => table.get(name)),
    write: (body, revision) => inTime(() => table.put(name, body, revision)),
  }
}
