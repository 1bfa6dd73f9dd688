import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import type { NodesAnswer, OverviewAnswer, OverviewUpdate, SessionState } from '@sluice/contract'
import { every, nowMs } from '../clock-and-timers.ts'

/** The policy that the service sends with the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** What the fake answers with. */
export interface FakeFigures {
  /** The folder of the build. */
  readonly dist: string
  /** The path below which it is reached, with a slash at its end. Default: `/`. */
  readonly prefix?: string
  /** Resources with traffic. */
  readonly resources: number
  /** Time between updates, in milliseconds. */
  readonly everyMs: number
  readonly role?: 'viewer' | 'editor' | 'admin'
}

/** A server with the page and with figures that are known in advance, such as 500 resources at ten updates a second. */
export interface FakeService {
  readonly url: string
  /** Updates that were sent. */
  readonly sentUpdates: number
  /** Ends the streams, and answers nothing until `comeBack`. */
  goAway(): void
  comeBack(): void
  close(): Promise<void>
}

interface State {
  readonly figures: FakeFigures
  readonly streams: Set<ServerResponse>
  isAway: boolean
  sent: number
}

/** Starts the fake on a free port. */
export async function startFakeService(figures: FakeFigures): Promise<FakeService> {
  const { prefix = '/' } = figures
  const state: State = { figures, streams: new Set(), isAway: false, sent: 0 }
  const server = createServer((request, response) => {
    if (state.isAway) request.socket.destroy()
    else answer(state, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stopUpdates = every(figures.everyMs, () => sendUpdates(state))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    get sentUpdates() {
      return state.sent
    },
    goAway() {
      state.isAway = true
      for (const stream of state.streams) stream.destroy()
    },
    comeBack() {
      state.isAway = false
    },
    close: () => {
      stopUpdates()
      return closeServer(server)
    },
  }
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

function answer(state: State, request: IncomingMessage, response: ServerResponse): void {
  const { dist, prefix = '/' } = state.figures
  const url = new URL(request.url ?? '/', 'http://fake')
  const path = `/${url.pathname.slice(prefix.length)}`
  const body = bodyOf(state, path, url.searchParams)
  if (path === '/admin/overview/live') openStream(state, response)
  else if (body === undefined) sendFile(dist, path, response)
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** A file of the build, or the page. Its links lead back to the root, however deep the path is. */
function sendFile(dist: string, path: string, response: ServerResponse): void {
  const file = join(dist, normalize(path))
  if (path !== '/' && extname(path) !== '' && existsSync(file)) {
    response.writeHead(200, { 'content-type': MEDIA_TYPES[extname(path)] ?? 'application/octet-stream' })
    response.end(readFileSync(file))
    return
  }
  const up = '../'.repeat(path.split('/').length - 2) || './'
  const page = readFileSync(join(dist, 'index.html'), 'utf8').replaceAll(/(src|href)="\.\//g, `$1="${up}`)
  response.writeHead(200, { 'content-type': MEDIA_TYPES['.html'], 'content-security-policy': POLICY }).end(page)
}

function openStream(state: State, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': open\n\n')
  state.streams.add(response)
  response.on('close', () => state.streams.delete(response))
}

function sendUpdates(state: State): void {
  if (state.streams.size === 0) return
  state.sent += 1
  const text = `event: update\ndata: ${JSON.stringify(updateOf(state.figures, nowMs(), state.sent))}\n\n`
  for (const stream of state.streams) stream.write(text)
}

function bodyOf(state: State, path: string, query: URLSearchParams): unknown {
  if (path === '/auth/session') return sessionOf(state.figures)
  if (path === '/admin/nodes') return NODES
  if (path === '/admin/overview') {
    const range = overviewOf(state.figures, Number(query.get('from')), Number(query.get('to')))
    return query.has('node') ? { ...range, nodes: 1 } : range
  }
  return undefined
}

function sessionOf({ role = 'admin' }: FakeFigures): SessionState {
  const at = nowMs()
  const times = { createdAt: at, lastSeenAt: at, idleExpiresAt: at + 1_800_000, expiresAt: at + 43_200_000 }
  return {
    isSignedIn: true,
    session: { id: 'fake', keyId: 'slk_fake', name: 'ada', role, ...times, isCurrent: true },
    csrfToken: 'fake-token',
  }
}

const NODES: NodesAnswer = {
  at: 0,
  isShared: true,
  nodes: ['limits-1 (EU)', 'limits-2 (US)'].map((name, index) => ({
    id: `node-${index}`,
    name,
    isSelf: index === 0,
    isLost: false,
    version: '0.4.0',
    startedAt: 0,
    uptimeMs: 900_000,
    lastSeenAt: 0,
    threads: 4,
    servingThreads: 4,
    configVersion: 12,
    configLagMs: 400,
    store: 'redis',
    breaker: 'closed',
    failureMode: 'local',
    storeP99Ms: 1.7,
    checksPerSecond: 1200,
    denialsPerSecond: 37,
    inFlight: 3,
    firingAlerts: 0,
  })),
}

const TOP = ['user', 'apiKey', 'ip'].map((dimension) => ({
  dimension,
  entries: Array.from({ length: 10 }, (_, index) => ({
    entity: `${dimension}-${index + 1}`,
    denials: 900 - index * 70,
    error: index,
  })),
}))

/** A wave, the same for the same instant. */
function wave(atMs: number, index: number): number {
  return 1 + 0.5 * Math.sin(atMs / 40_000 + index) + 0.2 * Math.sin(atMs / 7000 + index * 3)
}

function sharesOf(count: number, atMs: number, seconds: number): OverviewUpdate['resources'] {
  return Array.from({ length: count }, (_, index) => {
    const checks = Math.round(40 * seconds * wave(atMs, index))
    return { name: `/api/v1/resource-${index}`, checks, denials: Math.round((checks * (index % 9)) / 30) }
  })
}

function updateOf({ resources, everyMs }: FakeFigures, atMs: number, sent: number): OverviewUpdate {
  const shares = sharesOf(resources, atMs, everyMs / 1000) ?? []
  return {
    at: atMs - everyMs,
    spanMs: everyMs,
    checks: shares.reduce((total, { checks }) => total + checks, 0),
    denials: shares.reduce((total, { denials }) => total + denials, 0),
    shadowDenials: Math.round((60 * wave(atMs, 5) * everyMs) / 1000),
    storeP50Ms: 0.3 * wave(atMs, 1),
    storeP99Ms: 1.4 * wave(atMs, 2),
    inFlight: sent % 7,
    resources: shares,
    regions: ['EU', 'US', 'APAC'].map((name, index) => ({
      name,
      checks: Math.round((100 * wave(atMs, index) * everyMs) / 1000),
      denials: 4,
    })),
    top: TOP,
  }
}

function overviewOf({ resources }: FakeFigures, from: number, to: number): OverviewAnswer {
  const stepMs = Math.max(10_000, Math.ceil((to - from) / 120 / 10_000) * 10_000)
  const at = Array.from({ length: Math.floor((to - from) / stepMs) }, (_, index) => from + index * stepMs)
  const scale = stepMs / 1000
  const series = (name: string, index: number, share: number): OverviewAnswer['resources'][number] => {
    const checks = at.map((atMs) => Math.round(40 * scale * wave(atMs, index)))
    return { name, checks, denials: checks.map((count) => Math.round(count * share)) }
  }
  const own = Array.from({ length: Math.min(7, resources) }, (_, index) => index)
  return {
    from,
    to,
    stepMs,
    at,
    checks: at.map((atMs) => Math.round(1200 * scale * wave(atMs, 0))),
    denials: at.map((atMs) => Math.round(160 * scale * wave(atMs, 3))),
    withoutStore: at.map(() => 0),
    storeErrors: at.map(() => 0),
    storeP50Ms: at.map((atMs) => 0.3 * wave(atMs, 1)),
    storeP99Ms: at.map((atMs) => 1.4 * wave(atMs, 2)),
    resources: own.map((index) => series(`/api/v1/resource-${index}`, index, (index % 9) / 30)),
    regions: ['EU', 'US', 'APAC'].map((name, index) => series(name, index, 0.03)),
    shadowChecks: at.map(() => 400 * scale),
    shadowDenials: at.map((atMs) => Math.round(60 * scale * wave(atMs, 5))),
    candidate: 13,
    nodes: 2,
    version: 12,
    configLagMs: 400,
    inFlight: 3,
    firingAlerts: 1,
    breaker: 'closed',
    failureMode: 'local',
    alertBounds: { denialRate: 0.3, storeLatencyMs: 10 },
    top: TOP,
    topSpanMs: 600_000,
  }
}
