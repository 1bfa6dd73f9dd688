import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { freePort, startRedis } from '@sluice/testing/servers'
import type { Bench } from './bench.ts'
import { startService } from './http-servers.ts'
import { medianOf } from './median.ts'

const run = promisify(execFile)

const ROUNDS = 5
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

/** Commands that a server answers in a second. */
async function press(
  port: number,
  { pipeline, calls }: (typeof MODES)[number],
  command: readonly string[],
): Promise<number> {
  const args = ['-p', String(port), '-c', CONNECTIONS, '-n', calls, '-P', pipeline, '-r', KEYS, '--csv', ...command]
  const { stdout } = await run('redis-benchmark', args)
  const figures = /,"([\d.]+)","[\d.]+","[\d.]+"/.exec(stdout)
  if (figures === null) throw new Error(`redis-benchmark printed ${stdout}`)
  return Number(figures[1])
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
      const targets = {
        service: { port: respPort, command: ['CL.THROTTLE', key, ...LIMIT] },
        redis: { port: redis.port, command: ['EVALSHA', stdout.trim(), '1', key, ...LIMIT] },
      }
      const names = ['service', 'redis'] as const
      const reached: Record<string, Record<(typeof names)[number], number[]>> = {}
      for (const mode of MODES) {
        const perSecond = { service: [] as number[], redis: [] as number[] }
        for (let round = 0; round <= ROUNDS; round++) {
          for (const name of names) {
            const { port, command } = targets[name]
            const calls = await press(port, mode, command)
            progress(
              `${mode.name}, round ${round} of ${ROUNDS}: ${name} ${Math.round(calls).toLocaleString('en')} calls/s`,
            )
            // Round 0 warms both up.
            if (round > 0) perSecond[name].push(calls)
          }
        }
        reached[mode.name] = perSecond
      }
      const ratios = Object.fromEntries(
        Object.entries(reached).map(([name, both]) => [name, medianOf(both.service) / medianOf(both.redis)]),
      )
      const floor = Object.fromEntries(MODES.map((mode) => [mode.name, mode.floor]))
      return {
        id: 'resp',
        results: Object.entries(reached).flatMap(([name, both]) => [
          { name: `service, ${name}`, opsPerSecond: Math.round(medianOf(both.service)) },
          { name: `Redis script, ${name}`, opsPerSecond: Math.round(medianOf(both.redis)) },
        ]),
        ratios,
        floor,
        ok: Object.entries(floor).every(([name, least]) => ratios[name]! >= least),
        notes: [`${CONNECTIONS} connections, ${KEYS} keys; client and server share two hardware threads`],
      }
    } finally {
      await service.stop()
    }
  },
}
