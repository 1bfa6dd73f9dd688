import type { BlockRequest } from '@sluice/contract'
import type { Block, Duration } from '@sluice/core'
import { durationMs, MICROS_PER_MS } from '@sluice/core/internal'
import type { Answer } from '../http/answer.ts'
import type { OperationHandlers, OperationRequest } from '../http/operation-handler.ts'
import { adminAnswer, removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { countedEntity } from './counted-entity.ts'
import { listEntries } from './entries.ts'
import { seenBy, underPrecondition } from './precondition.ts'
import { textOf } from './query.ts'
import { notFound } from './refusal.ts'

/** Callers that are refused everywhere for a time. */
export function blockHandlers(parts: AdminParts): OperationHandlers {
  return {
    'GET /admin/blocks': (request) =>
      listEntries<Block>(request, (filter) => parts.access.databaseReads.blocks.list(filter)),
    'PUT /admin/blocks': (request) => setBlock(parts, request),
    'DELETE /admin/blocks': (request) => liftBlock(parts, request),
  }
}

/** Keeps a block, and enforces it here before it is answered. It counts as one more strike, as every block does. */
async function setBlock({ access, context }: AdminParts, request: OperationRequest): Promise<Answer> {
  const { duration, reason, ...who } = request.body as BlockRequest
  const nowMs = context.clock.nowMicros() / MICROS_PER_MS
  const until = Math.ceil(nowMs + durationMs(duration as Duration, 'duration'))
  const first = { ...countedEntity(who), until, forgottenAt: until, ...(reason === undefined ? {} : { reason }) }
  const stored = await underPrecondition(request, () =>
    access.changeInDatabase(request, async (config, author) => {
      const before = await config.blocks.get(first)
      const seen = await seenBy(request, () => Promise.resolve(before?.revision))
      const strikes = strikesOf(before?.entry, nowMs) + 1
      const kept = await config.blocks.put({ ...first, strikes }, author, seen)
      context.engine.entries.putBlock(kept.entry)
      return kept
    }),
  )
  return adminAnswer(stored, { revision: stored.revision })
}

/**
 * Lifts a block wherever it holds, and forgets what led to it: also one that only this node knows of, and one that is only in the
 * store, of a rule that has no penalty any more.
 */
async function liftBlock({ access, context }: AdminParts, request: OperationRequest): Promise<Answer> {
  const { query } = request
  const key = countedEntity({ dimension: textOf(query, 'dimension'), entity: textOf(query, 'entity') })
  await underPrecondition(request, () =>
    access.changeInDatabase(request, async (config, author) => {
      const before = await config.blocks.get(key)
      const seen = await seenBy(request, () => Promise.resolve(before?.revision))
      const wasKept = await config.blocks.remove(key, author, seen)
      const rule = before?.entry.rule
      const wasHeld = await context.engine.unblock(key.dimension, key.entity, rule === undefined ? {} : { rule })
      if (!wasKept && !wasHeld) throw notFound('block of this caller')
    }),
  )
  return removedAnswer()
}

/** How many blocks there were lately: a block that is forgotten does not count. */
function strikesOf(block: Block | undefined, nowMs: number): number {
  return block !== undefined && Math.max(block.until, block.forgottenAt) > nowMs ? block.strikes : 0
}
