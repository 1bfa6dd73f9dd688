import { parseCidr } from '@sluice/core/internal'
import type { Block } from '@sluice/core/policy'
import type { Logger, NowMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { MainThread, ThreadGroup } from '../thread-messages/message-bus.ts'

// Blocked addresses for firewalls: a webhook for each change, and a list. Only addresses are exported: users, tenants
// and API keys mean nothing to a firewall and may be secrets.

/** A change of a block. */
export interface BlockChange {
  /** `created`: new or extended. `lifted`: ended before its time. */
  readonly kind: 'created' | 'lifted'
  readonly block: Pick<Block, 'dimension' | 'entity'> & Partial<Pick<Block, 'until' | 'strikes' | 'rule' | 'reason'>>
}

/** Exports a change of a block. Never throws. */
export type AnnounceBlock = (change: BlockChange) => void

/** A message about a block. */
export interface BlockNotice {
  /** Unique, without a full stop. Receivers use it to drop duplicates. */
  readonly id: string
  readonly kind: BlockChange['kind']
  /** When it was created, in milliseconds since 1970. */
  readonly at: number
  readonly data: BlockNoticeData
}

/** The `data` of the webhook. */
export interface BlockNoticeData {
  /** Blocked network, such as `192.0.2.7/32`. */
  readonly cidr: string
  /** When the block expires: RFC 3339 with milliseconds. Absent for a lifted block. */
  readonly expiresAt?: string
  readonly strikes?: number
  readonly rule?: string
  readonly reason?: string
}

/** Messages about blocks, to the main thread. */
export interface BlockMessages {
  'blocks.changed': (change: BlockChange) => void
}

/** Network of a blocked caller; undefined if it is not an address. */
function blockedNetwork({ dimension, entity }: Pick<Block, 'dimension' | 'entity'>): string | undefined {
  if (dimension !== 'ip' || 'problem' in parseCidr(entity)) return undefined
  if (entity.includes('/')) return entity
  return `${entity}/${entity.includes(':') ? 128 : 32}`
}

/** Body of the webhook, as Standard Webhooks recommends it. The same notice always gives the same bytes. */
export function blockBody({ kind, at, data }: BlockNotice): string {
  return JSON.stringify({ type: `block.${kind}`, timestamp: new Date(at).toISOString(), data })
}

/** Lines of the list for firewalls: blocked addresses at `nowMs`. */
export function feedLines(blocks: readonly Block[], nowMs: number): readonly string[] {
  return blocks.flatMap((block) => {
    const cidr = blockedNetwork(block)
    return cidr === undefined || block.until <= nowMs
      ? []
      : [`${cidr} # expires=${new Date(block.until).toISOString()}`]
  })
}

/** Sends changes from this thread to the main thread. Does nothing if blocks are not exported. */
export function blockAnnouncer({
  threads,
  isExported,
  log,
}: {
  readonly threads: Pick<ThreadGroup<BlockMessages>, 'callMain'>
  readonly isExported: boolean
  readonly log: Pick<Logger, 'error'>
}): AnnounceBlock {
  if (!isExported) return () => undefined
  return (change) => {
    if (blockedNetwork(change.block) === undefined) return
    threads
      .callMain('blocks.changed', change)
      .catch((error: unknown) => log.error('could not export a block change', { error: errorFields(error) }))
  }
}

/** Options of {@link BlockExport}. */
export interface BlockExportParts {
  /** Queues a notice. Resolves to false if the queue is full. */
  readonly send: (notice: BlockNotice) => Promise<boolean>
  readonly newId: () => string
  readonly nowMs: NowMs
  readonly log: Pick<Logger, 'error' | 'info'>
}

/**
 * Queues a webhook for each change, in the main thread. When the queue is full, changes are dropped; receivers find
 * them in the list. That is logged once until there is room again.
 */
export class BlockExport {
  readonly #parts: BlockExportParts
  #isFull = false
  #dropped = 0

  constructor(parts: BlockExportParts) {
    this.#parts = parts
  }

  /** Number of dropped changes. */
  get dropped(): number {
    return this.#dropped
  }

  /** Receives the changes of all threads. Call it once, in the main thread. */
  share(threads: Pick<MainThread<BlockMessages>, 'handleInMain'>): void {
    threads.handleInMain('blocks.changed', (change) => this.add(change))
  }

  async add({ kind, block }: BlockChange): Promise<void> {
    const { send, newId, nowMs, log } = this.#parts
    const cidr = blockedNetwork(block)
    if (cidr === undefined) return
    const { until, strikes, rule, reason } = block
    const data: BlockNoticeData = {
      cidr,
      ...(until === undefined ? {} : { expiresAt: new Date(until).toISOString() }),
      ...(strikes === undefined ? {} : { strikes }),
      ...(rule === undefined ? {} : { rule }),
      ...(reason === undefined ? {} : { reason }),
    }
    const isQueued = await send({ id: `block_${newId()}`, kind, at: nowMs(), data })
    if (!isQueued) this.#dropped++
    if (isQueued === this.#isFull) {
      this.#isFull = !isQueued
      if (isQueued) log.info('block changes are exported again', { dropped: this.#dropped })
      else log.error('too many block changes are pending: further ones are dropped')
    }
  }
}
