import { compileRule } from '../compile-rule.ts'
import { durationMs } from '../duration.ts'
import { nameSpace } from '../fingerprint.ts'
import type { Limit } from '../limit.ts'
import type { Block } from './live-entry.ts'
import type { Dimension, Penalty } from './rule-set.ts'

const PREFIX = 'penalty:'
const LONGEST_NAME = 128
const DEFAULT_GROWTH = 2
const DEFAULT_LONGEST_MS = 86_400_000

/**
 * The limit that counts the refusals of a rule: charge it 1 for each. The one that leaves nothing, or finds nothing left, is
 * the one too many. Whoever sets the block then resets the counter, so that each block takes its own refusals. They are
 * counted in fixed windows: two numbers a caller, which every store can hold, and which do not make refusing dearer the more
 * there are. Nobody is blocked with fewer refusals within the time; somebody whose refusals lie on both sides of the end of a
 * window is blocked by the next ones. While the store cannot be asked nothing is counted: an outage blocks nobody.
 */
export function penaltyLimit(rule: string, penalty: Penalty): Limit {
  const [limit] = compileRule(penaltyName(rule), {
    algorithm: 'fixed-window',
    limit: penalty.after,
    window: penalty.within,
    failureMode: 'open',
  })
  return limit!
}

/** What a new block depends on. */
export interface BlockCause {
  readonly penalty: Penalty
  /** The last block of the caller, also an ended one. */
  readonly previous: Block | undefined
  /** Milliseconds since 1970. */
  readonly nowMs: number
  readonly dimension: Dimension
  readonly entity: string
  /** Name of the rule that refused. */
  readonly rule: string
}

/**
 * The block that follows from too many refusals: `growth` times longer for each earlier one that is not forgotten, never
 * longer than `longest`, in whole milliseconds. It does not end before one that is still running.
 */
export function nextBlock({ penalty, previous, nowMs, dimension, entity, rule }: BlockCause): Block {
  const { growth = DEFAULT_GROWTH, longest, forgetAfter = '1d' } = penalty
  const blockMs = durationMs(penalty.block, 'block')
  const longestMs = longest === undefined ? Math.max(DEFAULT_LONGEST_MS, blockMs) : durationMs(longest, 'longest')
  const remembered = previous !== undefined && nowMs < previous.forgottenAt ? previous.strikes : 0
  const lengthMs = Math.min(longestMs, blockMs * growth ** remembered)
  const until = Math.max(Math.ceil(nowMs + lengthMs), previous?.until ?? 0)
  const forgottenAt = Math.ceil(until + durationMs(forgetAfter, 'forgetAfter'))
  return { dimension, entity, until, strikes: remembered + 1, forgottenAt, rule }
}

/**
 * `penalty:` and the rule's name, or where that is too long, a part of it and its hash. The second colon keeps the short form
 * apart from the others: no rule's name begins with one.
 */
function penaltyName(rule: string): string {
  if (PREFIX.length + rule.length <= LONGEST_NAME) return PREFIX + rule
  const { space0, space1 } = nameSpace(rule)
  const ending = `:${hex(space0)}${hex(space1)}`
  const begin = `${PREFIX}:`
  return begin + rule.slice(0, LONGEST_NAME - begin.length - ending.length) + ending
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}
