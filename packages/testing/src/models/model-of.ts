import type { Limit } from '@sluice/core/store'
import { concurrencyModel } from './concurrency-model.ts'
import { fixedWindowModel } from './fixed-window-model.ts'
import { meterModel, rolloverModel } from './meter-model.ts'
import type { ReferenceModel } from './reference-model.ts'
import { logModel, segmentsModel, slidingCounterModel } from './sliding-models.ts'

/** The reference model of a limit, with nothing taken yet. */
export function modelOf(limit: Limit): ReferenceModel {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'leaky-bucket-queue':
    case 'gcra':
      return meterModel(limit)
    case 'token-bucket-rollover':
      return rolloverModel(limit)
    case 'fixed-window':
      return fixedWindowModel(limit)
    case 'sliding-window-counter':
      return slidingCounterModel(limit)
    case 'sliding-window-log':
      return logModel(limit)
    case 'sliding-window-segments':
      return segmentsModel(limit)
    case 'concurrency':
      return concurrencyModel(limit)
    case 'hybrid':
      return overlayModel(limit)
  }
}

/** The window pays what it can, the bucket the rest for those entitled. */
function overlayModel(limit: Extract<Limit, { algorithm: 'hybrid' }>): ReferenceModel {
  const base = modelOf(limit.base)
  const burst = meterModel(limit.burst)
  return {
    left: (moment) => (limit.capacity === 0 ? 0 : base.left(moment) + (moment.entitled ? burst.left(moment) : 0)),
    take(moment, cost) {
      const fromBase = Math.min(cost, base.left(moment))
      if (fromBase > 0) base.take(moment, fromBase)
      // Also when nothing is taken: what has arrived is counted, in whole micro-units, with every call let in.
      burst.take(moment, cost - fromBase)
    },
  }
}
