import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { freePort, startRedis } from '@sluice/testing/servers'
import type { Bench, BenchResult } from './bench.ts'
import { startService } from './http-servers.ts'
import { medianOf } from './median.ts'

const run = promisify(execFile)

const ROUNDS = 5
const MICROS_PER_SECOND = 1_000_000
const CONNECTIONS = '50'
const KEYS = '10000'

/** How many commands a client sends before it waits for their replies. Enough calls for about a second. */
const MODES = [
  { name: 'pipelined by 16', pipeline: '16', calls: '400000', floor: 4 },
  { name: 'one by one', pipeline: '1', calls: '100000', floor: 1 },
] as const

/** Burst, count and period: nothing is denied for lack of units in a bench of some seconds. */
const LIMIT = ['1000000', '1000000', '60', '1'] as const

/** GCRA as redis-cell computes it, with its reply, in the fewest calls that a script can make. */
const SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = ARGV[3] * 1000000 / ARGV[2]
local tolerance = interval * (ARGV[1] + 1)
local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
if arrival < now then arrival = now end
local increment = interval * ARGV[4]
local next = arrival + increment
local late = next - tolerance - now
local denied, retry = 0, -1
if late > 0 then
  denied = 1
  if increment <= tolerance then retry = math.ceil(late / 1000000) end
  next = arrival
elseif increment > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000))
end
local ttl = next - now
return { denied, ARGV[1] + 1, math.floor((tolerance - ttl) / interval), retry, math.ceil(ttl / 1000000) }
`

/** What one run of redis-benchmark found. */
interface Pressed {
  readonly perSecond: number
  /** CPU time of the server for each call, in microseconds. Other programs on the machine do not change it. */
  readonly cpuMicros: number
}

/** Calls a server as fast as it answers. */
async function press(target: Target, { pipeline, calls }: (typeof MODES)[number]): Promise<Pressed> {
  const { port, command, cpuSeconds } = target
  const args = ['-p', String(port), '-c', CONNECTIONS, '-n', calls, '-P', pipeline, '-r', KEYS, '--csv', ...command]
  const before = await cpuSeconds()
  const { stdout } = await run('redis-benchmark', args)
  const cpuMicros = (((await cpuSeconds()) - before) * MICROS_PER_SECOND) / Number(calls)
  const figures = /,"([\d.]+)","[\d.]+","[\d.]+"/.exec(stdout)
  if (figures === null) throw new Error(`redis-benchmark printed ${stdout}`)
  return { perSecond: Number(figures[1]), cpuMicros }
}

/** A server and the command sent to it. */
interface Target {
  readonly port: number
  readonly command: readonly string[]
  /** CPU time that it has used so far. */
  readonly cpuSeconds: () => Promise<number>
}

async function cpuOfRedis(port: number): Promise<number> {
  const { stdout } = await run('redis-cli', ['-p', String(port), 'INFO', 'cpu'])
  const [user, system] = ['user', 'sys'].map((kind) =>
    Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(stdout)?.[1]),
  )
  return user! + system!
}

async function cpuOfService(checkUrl: string): Promise<number> {
  const shown = await (await fetch(new URL('/metrics', checkUrl))).text()
  return Number(/^process_cpu_seconds_total ([\d.]+)$/m.exec(shown)?.[1])
}

/** The Redis protocol of the service against Redis itself, with the same algorithm. */
export const resp: Bench = {
  id: 'resp',
  title: 'CL.THROTTLE of the service against the same GCRA as a script in Redis, by redis-benchmark',
  async run(progress) {
    await using redis = await startRedis()
    const respPort = await freePort()
    const service = await startService({ respPort })
    try {
      const { stdout } = await run('redis-cli', ['-p', String(redis.port), 'SCRIPT', 'LOAD', SCRIPT])
      const key = 'key:__rand_int__'
      const targets: Readonly<Record<'service' | 'redis', Target>> = {
        service: {
          port: respPort,
          command: ['CL.THROTTLE', key, ...LIMIT],
          cpuSeconds: () => cpuOfService(service.url),
        },
        redis: {
          port: redis.port,
          command: ['EVALSHA', stdout.trim(), '1', key, ...LIMIT],
          cpuSeconds: () => cpuOfRedis(redis.port),
        },
      }
      const results: BenchResult[] = []
      const ratios: Record<string, number> = {}
      for (const mode of MODES) {
        const pressed = { service: [] as Pressed[], redis: [] as Pressed[] }
        for (let round = 0; round <= ROUNDS; round++) {
          for (const name of ['service', 'redis'] as const) {
            const found = await press(targets[name], mode)
            const perSecond = Math.round(found.perSecond).toLocaleString('en')
            const cpu = `${found.cpuMicros.toFixed(1)} us of CPU`
            progress(`${mode.name}, round ${round} of ${ROUNDS}: ${name} ${perSecond} calls/s, ${cpu}`)
            // Round 0 warms both up.
            if (round > 0) pressed[name].push(found)
          }
        }
        const [ours, theirs] = [summed(pressed.service), summed(pressed.redis)]
        results.push({ name: `service, ${mode.name}`, ...ours }, { name: `Redis script, ${mode.name}`, ...theirs })
        ratios[mode.name] = ours.opsPerSecond / theirs.opsPerSecond
        ratios[`CPU time, ${mode.name}`] = theirs.clientMicros / ours.clientMicros
      }
      const floor = Object.fromEntries(MODES.map((mode) => [mode.name, mode.floor]))
      return {
        id: 'resp',
        results,
        ratios,
        floor,
        ok: Object.entries(floor).every(([name, least]) => ratios[name]! >= least),
        notes: [
          `${CONNECTIONS} connections, ${KEYS} keys; client and server share two hardware threads`,
          'CPU time is that of the server',
        ],
      }
    } finally {
      await service.stop()
    }
  },
}

/** Medians of some rounds. */
function summed(rounds: readonly Pressed[]): { readonly opsPerSecond: number; readonly clientMicros: number } {
  return {
    opsPerSecond: Math.round(medianOf(rounds.map(({ perSecond }) => perSecond))),
    clientMicros: Math.round(medianOf(rounds.map(({ cpuMicros }) => cpuMicros)) * 10) / 10,
  }
}
