import type { LoadOrder, LoadOutcome } from './autocannon-child.ts'
import { runChild } from './child.ts'
import { startService } from './http-servers.ts'
import { medianOf } from './median.ts'

// A long run of the service at 70% of what it can do: npm run soak [-- <minutes>]. First it is called as fast as it
// answers, to learn what it can do with this client on this machine. Prints a line a minute and exits with 1 when a
// request failed, memory in use kept growing, or answers became slower.

const [minutes = '10'] = process.argv.slice(2)
const SHARE = 0.7
const CONNECTIONS = 64
const USERS = 200
const SATURATING_SECONDS = 20
/** Minutes in which memory may settle before it must be flat. */
const SETTLING = 2
/** Growth of what is in use, from the end of the settling to the end of the run, that is still called flat. */
const MOST_GROWTH = 1.05
/** Growth of what 99 of 100 wait for, from the first half of the minutes to the second. */
const MOST_SLOWER = 2

const service = await startService()
const memory: number[] = []
const waits: number[] = []
let failures = 0

function load(order: Pick<LoadOrder, 'seconds' | 'perSecond'>): Promise<LoadOutcome> {
  const bodies = Array.from({ length: USERS }, (_, user) =>
    JSON.stringify({ userId: `user-${user}`, resource: '/api/v1/data', method: 'GET' }),
  )
  const whole: LoadOrder = { url: service.url, method: 'POST', connections: CONNECTIONS, bodies, ...order }
  return runChild<LoadOutcome>('autocannon-child.ts', [], JSON.stringify(whole))
}

try {
  await load({ seconds: SATURATING_SECONDS / 4 })
  const saturation = (await load({ seconds: SATURATING_SECONDS })).perSecond
  const perSecond = Math.round(SHARE * saturation)
  console.log(
    `saturated at ${Math.round(saturation).toLocaleString('en')} requests/s; runs at ${perSecond.toLocaleString('en')}`,
  )
  for (let minute = 1; minute <= Number(minutes); minute++) {
    const outcome = await load({ seconds: 60, perSecond })
    memory.push(await service.liveBytes())
    waits.push(outcome.p99Ms)
    const resident = await service.residentBytes()
    failures += outcome.errors + outcome.not2xx
    console.log(
      `minute ${minute} of ${minutes}: ${outcome.answered.toLocaleString('en')} answered, ${outcome.errors} ` +
        `errors, ${outcome.not2xx} not 200, ` +
        `p50 ${outcome.p50Ms} ms, p99 ${outcome.p99Ms} ms, p99.9 ${outcome.p999Ms} ms, longest ` +
        `${outcome.longestMs} ms, ` +
        `memory in use ${(memory.at(-1)! / 1e6).toFixed(1)} MB, resident ${Math.round(resident / 1e6)} MB`,
    )
  }
} finally {
  await service.stop()
}
const settled = memory[Math.min(SETTLING, memory.length) - 1] ?? Number.NaN
const growth = (memory.at(-1) ?? Number.NaN) / settled
const half = Math.ceil(waits.length / 2)
const slower = medianOf(waits.slice(-half)) / medianOf(waits.slice(0, half))
console.log(
  `${failures} failures; memory in use at the end is ${growth.toFixed(2)} times that after ${SETTLING} minutes; ` +
    `p99 of the second half is ${slower.toFixed(2)} times that of the first`,
)
process.exit(failures === 0 && growth <= MOST_GROWTH && slower <= MOST_SLOWER ? 0 : 1)
