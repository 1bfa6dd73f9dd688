import { createHash } from 'node:crypto'
import type { IncidentAnswer, Stored } from '@sluice/contract'
import { durationMs, MICROS_PER_MS } from '@sluice/core/internal'
import type { Block, Incident } from '@sluice/core/policy'
import { feedLines } from '../../alerts/block-export.ts'
import type { Answer, OperationHandlers, OperationRequest, RequestContext } from '../handler.ts'
import { adminAnswer, removedAnswer } from '../handler.ts'
import { notFound } from '../problems.ts'
import type { AdminContext } from './config-access.ts'
import { rejectEnded, seenBy, underPrecondition } from './config-access.ts'
import { countedEntity, listEntries } from './overrides-and-members.ts'

/** Callers that are denied everywhere for a time. */
export function blockHandlers(
  parts: AdminContext,
): OperationHandlers<'listBlocks' | 'blockFeed' | 'putBlock' | 'deleteBlock'> {
  return {
    listBlocks: ({ parameters }) =>
      listEntries<Block>(parameters, (filter) => parts.access.databaseReads.blocks.list(filter)),
    blockFeed: (request) => blockFeed(parts, request),
    putBlock: (request) => setBlock(parts, request),
    deleteBlock: (request) => liftBlock(parts, request),
  }
}

/** Stores a block, and enforces it here before it is answered. Every block counts as one more strike. */
async function setBlock(
  { access, context, announceBlock, observe }: AdminContext,
  request: OperationRequest<'putBlock'>,
): Promise<Answer> {
  const { duration, reason, ...who } = request.body
  const nowMs = context.clock.nowMicros() / MICROS_PER_MS
  const until = Math.ceil(nowMs + durationMs(duration, 'duration'))
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
  announceBlock({ kind: 'created', block: stored.entry })
  observe({ type: 'blocked', block: stored.entry })
  return adminAnswer(stored, { revision: stored.revision })
}

/** Number of entries per database read. */
const FEED_PAGE = 1000

/**
 * The blocked addresses for firewalls, one network per line. The tag is derived from the text: it changes with every
 * block that is added, expires or is lifted.
 */
async function blockFeed({ access, context }: AdminContext, { headers }: RequestContext): Promise<Answer> {
  const nowMs = context.clock.nowMicros() / MICROS_PER_MS
  const lines = [FEED_HEADER]
  let after: string | undefined
  do {
    const page = await access.databaseReads.blocks.list({ dimension: 'ip', limit: FEED_PAGE, ...(after && { after }) })
    lines.push(
      ...feedLines(
        page.items.map(({ entry }) => entry),
        nowMs,
      ),
    )
    after = page.next
  } while (after !== undefined)
  const body = `${lines.join('\n')}\n`
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const common = { ETag: etag, 'Cache-Control': 'private, no-cache' }
  if (hasTag(headers['if-none-match'], etag)) return { status: 304, headers: common, body: '' }
  const length = String(Buffer.byteLength(body))
  return {
    status: 200,
    headers: { ...common, 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': length },
    body,
  }
}

const FEED_HEADER = '# Addresses that Sluice blocks: a network, and when its block expires.'

/** Whether an `If-None-Match` header names this tag. A weak tag counts as the strong one (RFC 9110, 13.1.2). */
function hasTag(header: string | undefined, etag: string): boolean {
  const tags = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes(etag) || tags.includes('*')
}

/**
 * Lifts a block everywhere, and forgets what led to it: also one that only this node knows, and one that is only in the
 * store, of a rule that no longer has a penalty.
 */
async function liftBlock(
  { access, context, announceBlock }: AdminContext,
  request: OperationRequest<'deleteBlock'>,
): Promise<Answer> {
  const key = countedEntity(request.parameters)
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
  announceBlock({ kind: 'lifted', block: key })
  return removedAnswer()
}

/** Number of recent blocks: a forgotten block does not count. */
function strikesOf(block: Block | undefined, nowMs: number): number {
  return block !== undefined && Math.max(block.until, block.forgottenAt) > nowMs ? block.strikes : 0
}

const NOTHING_CHANGES =
  'No limit changes: no rule of the enforced version has an incident factor. Set "incident" on rules or on the ' +
  'rule set: "incident": 0.5 halves limits during an incident.'

/** The incident switch. */
export function incidentHandlers({ access, context }: AdminContext): OperationHandlers<'getIncident' | 'putIncident'> {
  const answer = (stored: Stored<Incident>): Answer => {
    const affectedRules = context.engine.incidentRules
    const isIdle = stored.entry.active && affectedRules === 0
    const body: IncidentAnswer = { ...stored, affectedRules, ...(isIdle && { warning: NOTHING_CHANGES }) }
    return adminAnswer(body, { revision: stored.revision })
  }
  return {
    getIncident: async () => answer(await access.databaseReads.incident.get()),

    putIncident: async (request) => {
      const incident = request.body
      rejectEnded(context.clock, [{ path: '/until', at: incident.until }])
      const stored = await underPrecondition(request, () =>
        access.changeInDatabase(request, async (config, author) => {
          const seen = await seenBy(request, async () => (await config.incident.get()).revision)
          return await config.incident.set(incident, author, seen)
        }),
      )
      return answer(stored)
    },
  }
}
