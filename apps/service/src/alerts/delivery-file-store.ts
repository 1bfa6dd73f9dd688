import type { DeliveryRecord, DeliveryStore } from '@sluice/runtime'
import type { StateFile } from './state-file.ts'

const PART = 'deliveries'

/** Keeps what is not delivered in a part of `file`. Every save writes all of it: there are never many. */
export function deliveryFileStore<T>(file: StateFile): DeliveryStore<T> {
  // The file is ours, of this version and whole.
  const kept = (file.get(PART) ?? []) as readonly DeliveryRecord<T>[]
  let records = new Map(kept.map((record) => [record.idempotencyKey, record]))
  return {
    load: () => Promise.resolve([...records.values()]),
    async save({ put, removed }) {
      const changed = new Map(records)
      for (const record of put) changed.set(record.idempotencyKey, record)
      for (const key of removed) changed.delete(key)
      await file.put(PART, [...changed.values()])
      records = changed
    },
  }
}
