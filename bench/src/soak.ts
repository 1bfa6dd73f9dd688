import { runChild } from './child.ts'
import { startService } from './http-servers.ts'

// A long run of the service at a constant rate: npm run soak [-- <minutes> <requests a second>]. Prints a line a minute and exits
// with 1 when a request failed or memory kept growing.

const [minutes = '10', perSecond = '4000'] = process.argv.slice(2)
const CONNECTIONS = 64
const USERS = 10_000
/** Memory may settle for so many minutes before it must be flat. */
const SETTLING = 2
/** Growth from the end of the settling to the end of the run that is still called flat. */
const MOST_GROWTH = 1.15

interface Minute {
  readonly answered: number
  readonly statuses: Readonly<Record<string, number>>
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly longestMs: number
}

const service = await startService()
const memory: number[] = []
let failures = 0
try {
  for (let minute = 1; minute <= Number(minutes); minute++) {
    const order = {
      url: service.url,
      perSecond: Number(perSecond),
      seconds: 60,
      connections: CONNECTIONS,
      users: USERS,
    }
    const outcome = await runChild<Minute>('http-load-child.ts', [JSON.stringify(order)])
    memory.push(await service.residentBytes())
    const refused = outcome.answered - (outcome.statuses['200'] ?? 0)
    failures += outcome.errors + refused
    console.log(
      `minute ${minute} of ${minutes}: ${outcome.answered.toLocaleString('en')} answered, ${outcome.errors} errors, ${refused} not 200, ` +
        `p50 ${outcome.p50Ms} ms, p99 ${outcome.p99Ms} ms, p99.9 ${outcome.p999Ms} ms, longest ${outcome.longestMs} ms, ` +
        `memory ${Math.round(memory.at(-1)! / 1e6)} MB`,
    )
  }
} finally {
  await service.stop()
}
const settled = memory[Math.min(SETTLING, memory.length) - 1] ?? Number.NaN
const growth = (memory.at(-1) ?? Number.NaN) / settled
console.log(`${failures} failures; memory at the end is ${growth.toFixed(2)} times that after ${SETTLING} minutes`)
process.exit(failures === 0 && growth <= MOST_GROWTH ? 0 : 1)
