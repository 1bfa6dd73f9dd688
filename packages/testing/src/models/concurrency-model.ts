import type { Limit } from '@sluice/core/store'
import type { ReferenceModel } from './reference-model.ts'

/** A list of leases; those that have not run out hold their slots. Nothing is given back or renewed. */
export function concurrencyModel(limit: Extract<Limit, { algorithm: 'concurrency' }>): ReferenceModel {
  const leases: { readonly endsAt: number; readonly slots: number }[] = []
  return {
    left({ now }) {
      const held = leases.filter(({ endsAt }) => endsAt > now).reduce((sum, { slots }) => sum + slots, 0)
      return Math.max(0, limit.limit - held)
    },
    take: ({ now }, cost) => void leases.push({ endsAt: now + limit.leaseMicros, slots: cost }),
  }
}
