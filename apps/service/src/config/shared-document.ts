import type { DocumentTable, StoredDocument } from '@sluice/config-store'
import type { Sleep } from '@sluice/runtime'

/** One document that all nodes share. Calls reject if it is unreachable. */
export interface SharedDocument {
  read(): Promise<StoredDocument | undefined>
  /** False if the stored revision is another one: then nothing was written. */
  write(body: string, revision: number): Promise<boolean>
}

/** Timeout of a call. */
const CALL_TIMEOUT_MS = 3000

/** A document of `table`. Calls time out, and reject while an earlier one is still pending. */
export function sharedDocument(table: DocumentTable, name: string, sleep: Sleep): SharedDocument {
  let pending: Promise<unknown> | undefined
  const inTime = async <T>(call: () => Promise<T>): Promise<T> => {
    if (pending !== undefined) throw new Error('an earlier call is still pending')
    const calling = call()
    const settled = calling
      .catch(() => undefined)
      .then(() => {
        if (pending === settled) pending = undefined
      })
    pending = settled
    const ended = new AbortController()
    const late = sleep(CALL_TIMEOUT_MS, ended.signal).then(
      () => Promise.reject(new Error(`no reply within ${CALL_TIMEOUT_MS} ms`)),
      () => calling,
    )
    try {
      return await Promise.race([calling, late])
    } finally {
      ended.abort()
      // The promise that loses the race must not become an unhandled rejection.
      late.catch(() => undefined)
    }
  }
  return {
    read: () => inTime(() => table.get(name)),
    write: (body, revision) => inTime(() => table.put(name, body, revision)),
  }
}
