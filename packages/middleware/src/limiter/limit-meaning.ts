import type { Decision, Limiter, LimitReport, Rule } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn } from '@sluice/core/internal'
import type { Eventually } from '../http/maybe-promise.ts'
import { whenThere } from '../http/maybe-promise.ts'

/** What the number of a limit means. */
export type LimitMeaning = Pick<LimitReport, 'windowMs' | 'quotaUnit'>

/** The meaning of the one limit of a rule; undefined when it has none or several, whose decisions say it themselves. */
export function meaningOf(rule: Rule): LimitMeaning | undefined {
  const [limit, ...others] = compileRule('rule', rule)
  if (limit === undefined || others.length > 0) return undefined
  // A decision on two limits reports on each.
  return decisionOn(createBatch([createItem(limit, 'a', 0), createItem(limit, 'b', 0)]), undefined).limits[0]
}

/** Asks a limiter what the first of its limits means, without taking anything; undefined when it does not limit. */
export function askMeaning(limiter: Limiter, key: string): Eventually<LimitMeaning | undefined> {
  // A decision about one key of one limit says no more than its number: about two keys it reports on each.
  const asked = limiter.checkAll([
    { key, cost: 0 },
    { key: `${key}'`, cost: 0 },
  ]) as Eventually<Decision>
  return whenThere(asked, ({ limits }) => limits[0])
}
