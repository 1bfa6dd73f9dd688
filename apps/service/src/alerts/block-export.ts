import { parseCidr } from '@sluice/core/internal'
import type { Block } from '@sluice/core/policy'
import type { Logger, NowMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { MainThread, ThreadGroup } from '../threads/message-bus.ts'

// Blocks of addresses, for firewalls: a webhook for each change, and a list of all. Only addresses are exported. Users, tenants
// and API keys mean nothing to a firewall, and may be secrets.

/** A change of a block. */
export interface BlockChange {
  /** `created`: it holds from now on, or for longer than before. `lifted`: somebody ended it. */
  readonly kind: 'created' | 'lifted'
  readonly block: Pick<Block, 'dimension' | 'entity'> & Partial<Pick<Block, 'until' | 'strikes' | 'rule' | 'reason'>>
}

/** Reports a change of a block to whoever exports blocks. Never throws. */
export type AnnounceBlock = (change: BlockChange) => void

/** What a firewall is told. */
export interface BlockNotice {
  /** Names this notice, without a full stop: receivers know by it what they have already. */
  readonly id: string
  readonly kind: BlockChange['kind']
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
  readonly data: BlockNoticeData
}

/** The `data` of the webhook. */
export interface BlockNoticeData {
  /** The network that is blocked, such as `192.0.2.7/32`. */
  readonly cidr: string
  /** When the block ends by itself: RFC 3339, in milliseconds. Absent when it was lifted. */
  readonly expiresAt?: string
  readonly strikes?: number
  readonly rule?: string
  readonly reason?: string
}

const TOPIC = 'block-changes'

/** The network of a blocked caller; undefined when it is not an address. */
function blockedNetwork({ dimension, entity }: Pick<Block, 'dimension' | 'entity'>): string | undefined {
  if (dimension !== 'ip' || 'problem' in parseCidr(entity)) return undefined
  if (entity.includes('/')) return entity
  return `${entity}/${entity.includes(':') ? 128 : 32}`
}

/** The body of the webhook, as Standard Webhooks recommends it. Always the same bytes. */
export function blockBody({ kind, at, data }: BlockNotice): string {
  return JSON.stringify({ type: `block.${kind}`, timestamp: new Date(at).toISOString(), data })
}

/** Lines of a list for firewalls, for the blocks of addresses that hold at `nowMs`. */
export function feedLines(blocks: readonly Block[], nowMs: number): readonly string[] {
  return blocks.flatMap((block) => {
    const cidr = blockedNetwork(block)
    return cidr === undefined || block.until <= nowMs
      ? []
      : [`${cidr} # expires=${new Date(block.until).toISOString()}`]
  })
}

/** Sends changes from this thread to the main thread. Does nothing when blocks are not exported. */
export function blockAnnouncer({
  threads,
  isExported,
  log,
}: {
  readonly threads: Pick<ThreadGroup, 'askMain'>
  readonly isExported: boolean
  readonly log: Pick<Logger, 'error'>
}): AnnounceBlock {
  if (!isExported) return () => undefined
  return (change) => {
    if (blockedNetwork(change.block) === undefined) return
    threads
      .askMain(TOPIC, change)
      .catch((error: unknown) => log.error('a change of a block was not exported', { error: errorFields(error) }))
  }
}

/** What {@link BlockExport} works with. */
export interface BlockExportParts {
  /** Queues a notice. Resolves to false when there is no room. */
  readonly send: (notice: BlockNotice) => Promise<boolean>
  readonly newId: () => string
  readonly nowMs: NowMs
  readonly log: Pick<Logger, 'error' | 'info'>
}

/**
 * Queues a webhook for each change, in the main thread. When the queue is full, changes are dropped: whoever receives webhooks
 * finds them in the list. That is logged once, until there is room again.
 */
export class BlockExport {
  readonly #parts: BlockExportParts
  #isFull = false
  #dropped = 0

  constructor(parts: BlockExportParts) {
    this.#parts = parts
  }

  /** Number of changes that were dropped. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes the changes of all threads. Call it once, in the main thread. */
  share(threads: Pick<MainThread, 'answerForAll'>): void {
    threads.answerForAll(TOPIC, (change) => this.add(change as BlockChange))
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
      if (isQueued) log.info('changes of blocks are exported again', { dropped: this.#dropped })
      else log.error('too many changes of blocks wait for delivery, and the next ones are dropped')
    }
  }
}
