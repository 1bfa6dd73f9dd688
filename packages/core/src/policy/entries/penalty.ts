import { nameSpace } from '../../fingerprint.ts'
import { durationMs } from '../../rule/duration.ts'
import type { Limit } from '../../rule/limit.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { Dimension, Penalty } from '../rule-set/rule-set.ts'
import type { Block } from './live-entry.ts'

const PREFIX = 'penalty:'
const LONGEST_NAME = 128
const DEFAULT_GROWTH = 2
const DEFAULT_LONGEST_MS = 86_400_000

/** Longest time that the right to block a caller is held. See {@link PenaltyLimits.claim}. */
const LONGEST_CLAIM_MS = 1000

/**
 * The limits behind a penalty. Both belong to one rule name, {@link penaltyName}, so a block under that name stops
 * both.
 *
 * Invariant: `after` denials within `within` cause one block, on any number of nodes. Each denial is charged to
 * `denials`; a node that finds that counter full charges `claim`, and only the node that gets the claim blocks. The
 * block is written under `penaltyName` too, together with the end of the counter, so denials in flight are not counted
 * while it runs. See docs/decisions/2026-11-18-one-violation-one-block.md.
 */
export interface PenaltyLimits {
  /**
   * Counts denials in fixed windows: two numbers for each caller, which every store can hold. No caller is blocked for
   * fewer denials within the time; a caller whose denials lie on both sides of the end of a window is blocked by the
   * next ones.
   */
  readonly denials: Limit
  /**
   * Grants the right to block to one node at a time. It is held for a second, or for a block if that is shorter: a node
   * that dies before it blocks delays the block by as much.
   */
  readonly claim: Limit
}

/**
 * The limits behind the penalty of a rule. While the store is unavailable, nothing is counted and no caller is blocked.
 */
export function penaltyLimits(rule: string, penalty: Penalty): PenaltyLimits {
  const name = penaltyName(rule)
  const blockMs = durationMs(penalty.block, 'block')
  const failureMode = 'open'
  const denials = { algorithm: 'fixed-window', limit: penalty.after, window: penalty.within, failureMode } as const
  const claim = { algorithm: 'gcra', limit: 1, window: Math.min(LONGEST_CLAIM_MS, blockMs), failureMode } as const
  return { denials: compileRule(name, denials)[0]!, claim: compileRule(name, claim)[0]! }
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
  /** Name of the rule that denied. */
  readonly rule: string
}

/**
 * The block that follows from too many denials, for a caller that is not blocked: `growth` times longer for each
 * earlier one that is not forgotten, never longer than `longest`, in whole milliseconds.
 */
export function nextBlock({ penalty, previous, nowMs, dimension, entity, rule }: BlockCause): Block {
  const { growth = DEFAULT_GROWTH, longest, forgetAfter = '1d' } = penalty
  const blockMs = durationMs(penalty.block, 'block')
  const longestMs = longest === undefined ? Math.max(DEFAULT_LONGEST_MS, blockMs) : durationMs(longest, 'longest')
  const remembered = previous !== undefined && nowMs < previous.forgottenAt ? previous.strikes : 0
  const lengthMs = Math.min(longestMs, blockMs * growth ** remembered)
  const until = Math.ceil(nowMs + lengthMs)
  const forgottenAt = Math.ceil(until + durationMs(forgetAfter, 'forgetAfter'))
  return { dimension, entity, until, strikes: remembered + 1, forgottenAt, rule }
}

/**
 * The name that the limits behind a penalty belong to: `penalty:` and the rule's name, or where that is too long, a
 * part of it and its hash. The second colon keeps the short form apart from the others: no rule's name begins with one.
 */
export function penaltyName(rule: string): string {
  if (PREFIX.length + rule.length <= LONGEST_NAME) return PREFIX + rule
  const { space0, space1 } = nameSpace(rule)
  const ending = `:${hex(space0)}${hex(space1)}`
  const begin = `${PREFIX}:`
  return begin + rule.slice(0, LONGEST_NAME - begin.length - ending.length) + ending
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}
