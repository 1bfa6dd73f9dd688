import { Agent, request } from 'node:http'

// Sends requests at a constant rate over a bounded number of connections, and measures each from the instant it was
// due, so that a server that stops for a moment pays for all requests that were due meanwhile. Started by
// http-check and the soak.

interface Order {
  readonly url: string
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
  /** Callers, each with its own limit. */
  readonly users: number
}

interface Outcome {
  readonly answered: number
  readonly statuses: Readonly<Record<string, number>>
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly longestMs: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as Order
const agent = new Agent({ keepAlive: true, maxSockets: order.connections })
const statuses: Record<string, number> = {}
const latenciesMs: number[] = []
let errors = 0
let open = 0
let sent = 0

function ask(dueMs: number): void {
  open++
  const body = JSON.stringify({ userId: `user-${sent++ % order.users}`, resource: '/api/v1/data', method: 'GET' })
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  const asked = request(order.url, { method: 'POST', agent, headers }, (response) => {
    response.resume()
    response.on('end', () => {
      open--
      latenciesMs.push(performance.now() - dueMs)
      statuses[String(response.statusCode)] = (statuses[String(response.statusCode)] ?? 0) + 1
    })
  })
  asked.on('error', () => {
    open--
    errors++
  })
  asked.end(body)
}

function quantile(sorted: readonly number[], share: number): number {
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) * 1000) / 1000
}

const started = performance.now()
const total = order.perSecond * order.seconds
let due = 0
await new Promise<void>((resolve) => {
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - started
    for (; due < total && (due * 1000) / order.perSecond <= elapsedMs; due++)
      ask(started + (due * 1000) / order.perSecond)
    if (due < total || (open > 0 && elapsedMs < (order.seconds + 10) * 1000)) return
    clearInterval(timer)
    resolve()
  }, 1)
})
agent.destroy()
latenciesMs.sort((one, other) => one - other)
const outcome: Outcome = {
  answered: latenciesMs.length,
  statuses,
  errors: errors + open,
  p50Ms: quantile(latenciesMs, 0.5),
  p99Ms: quantile(latenciesMs, 0.99),
  p999Ms: quantile(latenciesMs, 0.999),
  longestMs: quantile(latenciesMs, 1),
}
process.stdout.write(JSON.stringify(outcome))
process.exit(0)
