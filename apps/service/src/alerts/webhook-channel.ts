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
import type { BlockNotice } from './block-export.ts'
import { blockBody } from './block-export.ts'
import type { Webhook } from './webhook-request.ts'
import { postWebhook, WebhookError } from './webhook-request.ts'

/** What a webhook reports. */
export type WebhookNotice = AlertNotice | BlockNotice

/** A notice for one receiver: plain data, without its URL. */
export interface WebhookMessage {
  /** Id of the {@link Webhook}. */
  readonly webhook: string
  /** Scheme and host, for people. */
  readonly destination: string
  readonly notice: WebhookNotice
}

/** Options of {@link WebhookChannel}. */
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
  readonly maxPending?: number
}

/** Result of a redelivery. `full`: too many messages are pending. */
export type RedeliverOutcome = 'queued' | 'unknown' | 'full' | 'closed'

/** Ten attempts within a quarter of an hour. */
const TRIES = { maxTries: 10, baseMs: 2000, capMs: 300_000, timeoutMs: 10_000 }

const BOUNDS = { mostDead: 500, mostInFlight: 8 }

/**
 * Delivers notices to webhooks at least once. A failed attempt is retried, up to ten attempts. After the last one, or
 * after a permanent failure, the message becomes a dead letter, which can be redelivered.
 */
export class WebhookChannel {
  readonly #webhooks: readonly Webhook[]
  readonly #queue: DeliveryQueue<WebhookMessage>

  private constructor(webhooks: readonly Webhook[], queue: DeliveryQueue<WebhookMessage>) {
    this.#webhooks = webhooks
    this.#queue = queue
  }

  /** Continues with the messages in the store. Rejects with its error if it cannot be read. */
  static async open({
    webhooks,
    log,
    tracing,
    maxPending = 500,
    ...ports
  }: WebhookChannelParts): Promise<WebhookChannel> {
    const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
    const queue = await DeliveryQueue.open<WebhookMessage>({
      ...ports,
      ...TRIES,
      ...BOUNDS,
      mostPending: maxPending,
      deliver: (attempt) => deliver(byId.get(attempt.message.webhook), attempt, { tracing, nowMs: ports.nowMs }),
      newKey: () => {
        throw new Error('messages are always added with a key')
      },
      shouldRetry: (error) => !(isWebhookError(error) && error.isFinal),
      retryAfterMs: (error) => (isWebhookError(error) ? error.retryAfterMs : undefined),
      onEvent: (event) => report(event, log),
    })
    return new WebhookChannel(webhooks, queue)
  }

  /**
   * Queues a notice for every receiver. Resolves to false if the queue is full: send it again later. A notice that is
   * still pending is not queued twice. Never rejects.
   */
  async send(notice: WebhookNotice): Promise<boolean> {
    const outcomes = await Promise.all(
      this.#webhooks.map(({ id, destination }) =>
        this.#queue.add({ webhook: id, destination, notice }, { idempotencyKey: keyOf(notice.id, id) }),
      ),
    )
    return outcomes.every(({ outcome }) => outcome === 'queued' || outcome === 'duplicate')
  }

  /** Whether delivery of a notice is still pending for a receiver. */
  isPending(noticeId: string): boolean {
    return this.#webhooks.some(({ id }) => this.#queue.isPending(keyOf(noticeId, id)))
  }

  /** Newest first. */
  deadLetters(): readonly DeadLetter[] {
    return this.#queue.deadLetters().map(shownLetter).reverse()
  }

  redeliver(id: string): RedeliverOutcome {
    return this.#queue.redeliver(id)
  }

  counts(): DeliveryCounts {
    return this.#queue.counts()
  }

  /** Ends in-flight attempts and saves what is not delivered. */
  close(): Promise<void> {
    return this.#queue.close()
  }
}

/** Key of a notice for one receiver. */
function keyOf(noticeId: string, webhook: string): string {
  return `${noticeId}.${webhook}`
}

async function deliver(
  webhook: Webhook | undefined,
  attempt: DeliveryAttempt<WebhookMessage>,
  { tracing, nowMs }: Pick<WebhookChannelParts, 'tracing' | 'nowMs'>,
): Promise<void> {
  if (webhook === undefined) throw new WebhookError('is no longer configured', { isFinal: true })
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
      log.warn('a webhook message was not delivered and will be retried', {
        ...messageFields(delivery.message),
        error: errorFields(error),
        delayMs,
      })
      return
    }
    case 'dead':
      log.error('a webhook message could not be delivered', {
        ...messageFields(event.letter.message),
        reason: event.letter.reason,
      })
      return
    case 'dead-dropped':
      log.error('a dead letter was dropped', messageFields(event.letter.message))
      return
    case 'store-failed':
      log.error('could not save the delivery queue', { error: errorFields(event.error) })
      return
    case 'delivered':
  }
}

function messageFields({ destination, notice }: WebhookMessage): { destination: string; notice: string } {
  return { destination, notice: notice.id }
}
