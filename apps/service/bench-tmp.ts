import { mkdtempSync } from 'node:fs'
import { LogOutput, systemNowMs, SnowflakeGenerator } from '@sluice/runtime'
import { readSettings } from './src/settings.ts'
import { systemParts } from './src/system-parts.ts'
import { composeThread } from './src/thread-service.ts'
import { DatabaseHost } from './src/limits/config-database.ts'
import { dataFolder } from './src/limits/data-folder.ts'
import { SigningSecret } from './src/limits/signing-secret.ts'
import { SingleThread } from './src/threads/thread-group.ts'
import { MemoryRollups } from './src/observability/rollup-store.ts'
import { checkHandlers } from './src/check-api/check-handlers.ts'
import { observedHandlers } from './src/observability/observed-handlers.ts'
import { parseCheckRequest } from '@sluice/contract'
import { MetricRegistry } from '@sluice/runtime'
import { systemMonotonicMs } from '@sluice/core/internal'
import { IdSource, MachineCells } from './src/limits/machine-cell.ts'
const settings = { ...readSettings({ args: [], environment: {} }), dataDir: mkdtempSync('/tmp/bench/m/x'), port: 0 }
const out = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: 'off' })
const system = systemParts(out); const folder = dataFolder(settings.dataDir)
const nowMs = () => system.clock.nowMicros() / 1000
const secret = new SigningSecret(undefined)
const host = new DatabaseHost({ settings, ...system, folder, secret, nowMs, showKey: () => undefined })
await host.start()
const cells = new MachineCells(1); cells.give(0, 0, Infinity); const ids = new IdSource(cells, 0, nowMs)
const svc = composeThread({ settings, system, folder, threads: new SingleThread(), database: host.database, shared: undefined, secret: secret.bytes, nextId: () => ids.next(), rollups: new MemoryRollups(), port: 0, checks: [] } as never)
await svc.start()
const ctx = svc.context
const h = checkHandlers({ ...ctx, threads: new SingleThread() } as never)['POST /internal/ratelimit/check']!
const reg = new MetricRegistry()
const oh = observedHandlers({ 'POST /internal/ratelimit/check': h }, { metrics: reg, log: ctx.log, monotonicMs: systemMonotonicMs, secret: secret.bytes })['POST /internal/ratelimit/check']!
const bodies = Array.from({ length: 10000 }, (_, i) => ({ userId: 'user-' + i, clientIp: '10.1.' + (i % 200) + '.' + (i % 250), resource: '/api/v1/data', method: 'GET', tokens: 1 }))
const reqOf = (body: unknown) => ({ body, headers: {}, remoteAddress: '127.0.0.1' })
function time(name: string, f: (i: number) => unknown, n = 300000) { for (let r = 0; r < 4; r++) { const t = process.hrtime.bigint(); for (let i = 0; i < n; i++) f(i); const ns = Number(process.hrtime.bigint() - t) / n; if (r === 3) console.log(name.padEnd(30), ns.toFixed(0), 'ns') } }
time('parseCheckRequest', (i) => parseCheckRequest(bodies[i % 10000]))
time('JSON.parse+stringify', (i) => JSON.parse(JSON.stringify(bodies[i % 10000])))
time('engine.check (observed)', (i) => { const b = bodies[i % 10000]!; return ctx.engine.check({ user: b.userId, ip: b.clientIp, resource: b.resource, method: 'GET', cost: 1 } as never) })
const { PolicyEngine } = await import('@sluice/core')
time('engine.check (plain)', (i) => { const b = bodies[i % 10000]!; return PolicyEngine.prototype.check.call(ctx.engine, { user: b.userId, ip: b.clientIp, resource: b.resource, method: 'GET', cost: 1 } as never) })
time('nextId', () => ids.next())
time('handler', (i) => h(reqOf(bodies[i % 10000]) as never))
time('observed handler', (i) => oh(reqOf(bodies[i % 10000]) as never))
await svc.stop(); await host.stop(); process.exit()
