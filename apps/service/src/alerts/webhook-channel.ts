import type { DeadLetter } from '@sluice/contract'
import type {
  DeadLetter as DeadDelivery,
  DeliveryAttempt,
  DeliveryCounts,
  DeliveryEvent,
  DeliveryStore,
  Logger,
  NowMs,
  Random,
  Sleep,
} from '@sluice/runtime'
import { DeliveryQueue } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import type { AlertNotice } from './alert-record.ts'
import { noticeBody } from './alert-record.ts'
import type { AlertChannel, RedeliverOutcome } from './alerts.ts'
import type { BlockNotice } from './block-export.ts'
import { blockBody } from './block-export.ts'
import type { Webhook } from './webhook.ts'
import { postWebhook, WebhookError } from './webhook.ts'

/** What webhooks are about. */
export type WebhookNotice = AlertNotice | BlockNotice

/** A notice for one receiver: plain data, without its address. */
export interface WebhookMessage {
  /** The {@link Webhook} it is for. */
  readonly webhook: string
  /** Scheme and host, to be shown. */
  readonly destination: string
  readonly notice: WebhookNotice
}

/** What a {@link WebhookChannel} works with. */
export interface WebhookChannelParts {
  readonly webhooks: readonly Webhook[]
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Starts a trace for every delivery attempt and propagates it. Default: no traces. */
  readonly tracing?: Pick<Tracing, 'beginAsking' | 'outgoingHeaders'> | undefined
  /** Where messages survive a restart. Default: nowhere. */
  readonly store?: DeliveryStore<WebhookMessage> | undefined
  /** Maximum number of messages that wait for delivery. Default: 500. */
  readonly mostPending?: number
}

/** Ten tries within a quarter of an hour. */
const TRIES = { maxTries: 10, baseMs: 2000, capMs: 300_000, timeoutMs: 10_000 }

const MOST = { mostDead: 500, mostInFlight: 8 }

/**
 * Delivers notices to webhooks, each at least once: a try that fails is followed by others, ten in a quarter of an hour; after
 * the last, or when no try can help, the message is a dead letter, which can be tried again.
 */
export class WebhookChannel implements AlertChannel {
  readonly #webhooks: readonly Webhook[]
  readonly #queue: DeliveryQueue<WebhookMessage>

  private constructor(webhooks: readonly Webhook[], queue: DeliveryQueue<WebhookMessage>) {
    this.#webhooks = webhooks
    this.#queue = queue
  }

  /** Goes on with what the store has. Rejects with its error when it cannot be read. */
  static async open({
    webhooks,
    log,
    tracing,
    mostPending = 500,
    ...ports
  }: WebhookChannelParts): Promise<WebhookChannel> {
    const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
    const queue = await DeliveryQueue.open<WebhookMessage>({
      ...ports,
      ...TRIES,
      ...MOST,
      mostPending,
      deliver: (attempt) => deliver(byId.get(attempt.message.webhook), attempt, { tracing, nowMs: ports.nowMs }),
      newKey: () => {
        throw new Error('every message is added with a key, by which it is known after a restart')
      },
      shouldRetry: (error) => !(isWebhookError(error) && error.isFinal),
      retryAfterMs: (error) => (isWebhookError(error) ? error.retryAfterMs : undefined),
      onEvent: (event) => report(event, log),
    })
    return new WebhookChannel(webhooks, queue)
  }

  async send(notice: WebhookNotice): Promise<boolean> {
    const outcomes = await Promise.all(
      this.#webhooks.map(({ id, destination }) =>
        this.#queue.add({ webhook: id, destination, notice }, { idempotencyKey: keyOf(notice.id, id) }),
      ),
    )
    return outcomes.every(({ outcome }) => outcome === 'queued' || outcome === 'duplicate')
  }

  isPending(noticeId: string): boolean {
    return this.#webhooks.some(({ id }) => this.#queue.isPending(keyOf(noticeId, id)))
  }

  deadLetters(): readonly DeadLetter[] {
    return this.#queue.deadLetters().map(shownLetter).reverse()
  }

  redeliver(id: string): RedeliverOutcome {
    return this.#queue.redeliver(id)
  }

  /** How many messages there are, and what became of those before. */
  counts(): DeliveryCounts {
    return this.#queue.counts()
  }

  /** Ends tries that are under way, and keeps what is not delivered. */
  close(): Promise<void> {
    return this.#queue.close()
  }
}

/** Names the message to one receiver. */
function keyOf(noticeId: string, webhook: string): string {
  return `${noticeId}.${webhook}`
}

async function deliver(
  webhook: Webhook | undefined,
  attempt: DeliveryAttempt<WebhookMessage>,
  { tracing, nowMs }: Pick<WebhookChannelParts, 'tracing' | 'nowMs'>,
): Promise<void> {
  if (webhook === undefined) throw new WebhookError('is not among the webhooks any more', { isFinal: true })
  const { message, signal } = attempt
  const { notice } = message
  const post = { id: notice.id, body: bodyOf(notice), nowMs: nowMs(), signal }
  if (tracing === undefined) {
    await postWebhook(webhook, post)
    return
  }
  const span = tracing.beginAsking('POST webhook')
  try {
    span.end(await span.run(() => postWebhook(webhook, { ...post, headers: tracing.outgoingHeaders() })))
  } catch (error) {
    span.end(isWebhookError(error) ? error.status : 0)
    throw error
  }
}

function bodyOf(notice: WebhookNotice): string {
  return 'alert' in notice ? noticeBody(notice) : blockBody(notice)
}

function isWebhookError(error: unknown): error is WebhookError {
  return error instanceof WebhookError
}

function shownLetter(letter: DeadDelivery<WebhookMessage>): DeadLetter {
  const { idempotencyKey, message, tries, addedAt, failedAt, reason } = letter
  return {
    id: idempotencyKey,
    ...('alert' in message.notice ? { alertId: message.notice.alert.id } : { cidr: message.notice.data.cidr }),
    destination: message.destination,
    attempts: tries,
    firstAttemptAt: Math.floor(addedAt),
    lastAttemptAt: Math.floor(failedAt),
    error: reason,
  }
}

function report(event: DeliveryEvent<WebhookMessage>, log: WebhookChannelParts['log']): void {
  switch (event.type) {
    case 'retrying': {
      const { delivery, error, delayMs } = event
      log.warn('a webhook message was not delivered, and will be tried again', {
        ...told(delivery.message),
        error: errorFields(error),
        delayMs,
      })
      return
    }
    case 'dead':
      log.error('a webhook message could not be delivered', {
        ...told(event.letter.message),
        reason: event.letter.reason,
      })
      return
    case 'dead-dropped':
      log.error('a webhook message that could not be delivered was dropped', told(event.letter.message))
      return
    case 'store-failed':
      log.error('could not save the delivery queue', { error: errorFields(event.error) })
      return
    case 'delivered':
  }
}

function told({ destination, notice }: WebhookMessage): { destination: string; notice: string } {
  return { destination, notice: notice.id }
}
