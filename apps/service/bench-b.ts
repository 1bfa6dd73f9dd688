import { EndpointServer } from './src/http/endpoint-server.ts'
import { HttpServer } from './src/http/http-server.ts'
import { createRouter } from './src/http/router.ts'
import { InFlight } from '@sluice/runtime'
import { jsonAnswer } from './src/http/answer.ts'
const lane = process.env['LANE'] ? new InFlight({ most: 5000 }) : undefined
const big = process.env['BIG']
const body = '{"allowed":true,"reason":"allowed","limit":100,"remaining":99,"resetAt":"2026-11-16T03:06:41Z","retryAfter":null,"dimension":"user","rule":"default-user","decisionId":"2122190316256624640","version":1}'
const extra = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '99', 'X-RateLimit-Reset': '1794798401', 'X-RateLimit-Reset-After': '1' }
const target = { name: 'x', lane, admit: undefined, refuseParameters: undefined, body: { maxBytes: 16384 }, hasRequestId: false,
  handle: ({ body: b }: { body: unknown }) => big ? jsonAnswer(200, body, { headers: extra }) : jsonAnswer(200, JSON.stringify(b)) }
const route = createRouter([{ path: '/internal/ratelimit/check', method: 'POST', target }], 'x')
const requests = new EndpointServer({ route: route as never, reportError: console.error, newRequestId: () => 'x' })
const s = new HttpServer({ host: '127.0.0.1', port: Number(process.env['PORT']), requests, reportError: console.error, timeouts: { headersMs: 10_000, requestMs: 15_000, idleMs: 65_000, checkEveryMs: 1000 }, sleep: () => Promise.resolve(), graceMs: 1 })
await s.start()
