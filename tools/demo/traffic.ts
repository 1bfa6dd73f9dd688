import type { CheckRequest } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import { DEMO_STREAMS } from './demo-rules.ts'

const TICK_MS = 100
const MOST_OWED = 100
/** Length of the waves that traffic comes in, and of the bursts on top of them. */
const WAVE_MS = 180_000
const BURST_EVERY_MS = 47_000
const BURST_MS = 6000

/** Requests per second through the gateway, each with the address of this machine. */
const GATEWAY_PER_SECOND = 7

/** Where traffic goes. */
export interface TrafficTarget {
  /** The nodes that answer checks. */
  readonly urls: readonly string[]
  readonly gatewayUrl: string
  /** So many times the usual traffic. */
  readonly factor: number
}

/** Traffic that goes on until it is stopped. */
export interface Traffic {
  stop(): void
}

/**
 * Sends checks to nodes, as an application would: in batches, to each node in turn; and requests through the gateway. A
 * node that does not answer is tried again with the next batch.
 */
export function startTraffic({ urls, gatewayUrl, factor }: TrafficTarget): Traffic {
  const owed = DEMO_STREAMS.map(() => 0)
  let owedToGateway = 0
  const startedMs = performance.now()
  let turn = 0
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedMs
    const requests = DEMO_STREAMS.flatMap((stream, index) => {
      const due = owed[index]! + (stream.perSecond * factor * strength(elapsedMs, index) * TICK_MS) / 1000
      const count = Math.min(MOST_OWED, Math.floor(due))
      owed[index] = due - Math.floor(due)
      return Array.from({ length: count }, () => stream.request(draw))
    })
    for (let from = 0; from < requests.length; from += 100) {
      turn += 1
      void send(urls[turn % urls.length]!, requests.slice(from, from + 100))
    }
    owedToGateway += (GATEWAY_PER_SECOND * factor * TICK_MS) / 1000
    for (; owedToGateway >= 1; owedToGateway -= 1) void browse(gatewayUrl)
  }, TICK_MS)
  return { stop: () => clearInterval(timer) }
}

/** How strong a stream is at an instant: waves of all, and bursts of one after the other. */
function strength(elapsedMs: number, index: number): number {
  const wave = 1 + 0.35 * Math.sin((2 * Math.PI * elapsedMs) / WAVE_MS + index)
  const isBurst = (elapsedMs + index * 11_000) % BURST_EVERY_MS < BURST_MS
  return wave * (isBurst ? 2.4 : 1) * (0.85 + 0.3 * Math.random())
}

/** Low numbers come more often: a few callers make most calls. */
function draw(count: number): number {
  return Math.floor(Math.random() ** 1.7 * count)
}

async function send(url: string, requests: readonly CheckRequest[]): Promise<void> {
  await answered(new URL(OPERATIONS.checkBatch.path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ requests }),
  })
}

/** Somebody looks for something, looks at it, or looks at an order. */
async function browse(gatewayUrl: string): Promise<void> {
  const paths = ['/api/v1/search?q=', '/api/v1/search?q=', '/api/v1/products/', '/api/v1/orders/', '/pages/']
  await answered(new URL(`${paths[Math.floor(Math.random() * paths.length)]}${draw(500)}`, gatewayUrl), {})
}

/** Waits for the answer, whatever it is. The node may be starting, stopping or gone: traffic goes on. */
async function answered(url: URL, init: RequestInit): Promise<void> {
  await fetch(url, init).then(
    (response) => response.arrayBuffer(),
    () => undefined,
  )
}
