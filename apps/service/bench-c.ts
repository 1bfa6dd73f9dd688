import { EndpointServer } from './src/http/endpoint-server.ts'
import { HttpServer } from './src/http/http-server.ts'
import { createRouter } from './src/http/router.ts'
import { InFlight, MetricRegistry, Logger, LogOutput, LagGuard, systemLoopDelay } from '@sluice/runtime'
import { PolicyEngine, memoryStore, systemClock } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { checkHandlers } from './src/check-api/check-handlers.ts'
import { SingleThread } from './src/threads/thread-group.ts'
import { ObservedEngine } from './src/observability/observed-engine.ts'
import { Instrument } from './src/observability/instrument.ts'
import { observedHandlers } from './src/observability/observed-handlers.ts'
import { IdSource, MachineCells } from './src/limits/machine-cell.ts'
import { FIRST_RULES } from './src/limits/first-start.ts'
const level = Number(process.env['LEVEL'])
const nowMs = () => systemClock.nowMicros() / 1000
const guard = new LagGuard({ delay: systemLoopDelay(), nowMs })
const lane = new InFlight({ most: 5000, ...(level >= 1 ? { isOverloaded: () => guard.isLate() } : {}) })
const cells = new MachineCells(1); cells.give(0, 0, Infinity); const ids = new IdSource(cells, 0, nowMs)
const store = memoryStore()
const metrics = new MetricRegistry(); const log = new Logger(new LogOutput({ stream: process.stderr, nowMs, level: 'warn' }))
const secret = new Uint8Array(32)
const instrument = new Instrument({ metrics, log, clock: systemClock, secret })
const engine = level >= 2 ? new ObservedEngine({ store, ruleSet: FIRST_RULES }, { observer: instrument, monotonicMs: systemMonotonicMs }) : new PolicyEngine({ store, ruleSet: FIRST_RULES })
const handlers = checkHandlers({ settings: { headers: 'legacy', region: undefined }, clock: systemClock, sleep: () => Promise.resolve(), random: Math.random, store, engine, secret, nextId: level >= 0 ? () => ids.next() : () => '1', threads: new SingleThread() } as never)
const oh = level >= 3 ? observedHandlers(handlers, { metrics, log, monotonicMs: systemMonotonicMs, secret }) : handlers
const target = { name: 'x', lane, admit: undefined, refuseParameters: undefined, body: { maxBytes: 16384 }, hasRequestId: false, handle: oh['POST /internal/ratelimit/check']! }
const route = createRouter([{ path: '/internal/ratelimit/check', method: 'POST', target }], 'x')
const requests = new EndpointServer({ route: route as never, reportError: console.error, newRequestId: () => 'x' })
const s = new HttpServer({ host: '127.0.0.1', port: Number(process.env['PORT']), requests, reportError: console.error, timeouts: { headersMs: 10_000, requestMs: 15_000, idleMs: 65_000, checkEveryMs: 1000 }, sleep: () => Promise.resolve(), graceMs: 1 })
await s.start()
