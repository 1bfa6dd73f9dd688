import type { Bench, BenchReport, BenchResult } from './bench.ts'
import { gateway } from './gateway.ts'
import { grpc } from './grpc.ts'
import { httpCheck } from './http-check.ts'
import { latency } from './latency.ts'
import { memoryBytes } from './memory-bytes.ts'
import { memoryKeys } from './memory-keys.ts'
import { middleware } from './middleware.ts'
import { overload } from './overload.ts'
import { overridesLoad } from './overrides-load.ts'
import { redisLeased } from './redis-leased.ts'
import { redisLimits } from './redis-limits.ts'
import { redisHot, redisKeys } from './redis-peers.ts'
import { resp } from './resp.ts'
import { rulesScale } from './rules-scale.ts'
import { sharedThreads } from './shared-threads.ts'

const BENCHES: readonly Bench[] = [
  memoryKeys,
  memoryBytes,
  sharedThreads,
  redisKeys,
  redisHot,
  redisLimits,
  redisLeased,
  latency,
  rulesScale,
  overridesLoad,
  httpCheck,
  grpc,
  overload,
  resp,
  middleware,
  gateway,
]

const USAGE = `npm run bench -- <name> [--json]

Names:
${BENCHES.map(({ id, title }) => `  ${id.padEnd(16)}${title}`).join('\n')}
  ${'all'.padEnd(16)}all of them

Exits with 0 when every floor is met, 1 when one is not, 2 when asked for something unknown.
--json prints the report alone (with npm: npm run -s bench -- ...).
`

function chosen(words: readonly string[]): readonly Bench[] | undefined {
  const names = words.filter((arg) => arg !== '--json')
  if (names.length === 1 && names[0] === 'all') return BENCHES
  const benches = names.map((name) => BENCHES.find(({ id }) => id === name))
  return benches.length > 0 && benches.every((bench) => bench !== undefined) ? benches : undefined
}

function rounded(report: BenchReport): BenchReport {
  const ratios = Object.fromEntries(
    Object.entries(report.ratios).map(([name, ratio]) => [name, Math.round(ratio * 100) / 100]),
  )
  return { ...report, ratios }
}

function figuresOf({ opsPerSecond, bytesPerKey, p50Ms, p99Ms, clientMicros, serverMicros }: BenchResult): string {
  return [
    opsPerSecond === undefined ? '' : `${opsPerSecond.toLocaleString('en')} calls/s`,
    bytesPerKey === undefined ? '' : `${bytesPerKey} bytes a key`,
    p50Ms === undefined ? '' : `p50 ${p50Ms} ms`,
    p99Ms === undefined ? '' : `p99 ${p99Ms} ms`,
    clientMicros === undefined ? '' : `${clientMicros} us of CPU per call`,
    serverMicros === undefined ? '' : `${serverMicros} us in Redis`,
  ]
    .filter((figure) => figure !== '')
    .join(', ')
}

function printTable({ id, results, ratios, floor, ceiling = {}, ok, notes }: BenchReport): void {
  console.log(`\n${id}`)
  const width =
    2 + Math.max(...[...results.map(({ name }) => name), ...Object.keys(ratios)].map(({ length }) => length))
  for (const result of results) console.log(`  ${result.name.padEnd(width + 6)}${figuresOf(result)}`)
  for (const [name, ratio] of Object.entries(ratios)) {
    const least = name in floor ? ` (floor ${floor[name]})` : ''
    const most = name in ceiling ? ` (at most ${ceiling[name]})` : ''
    console.log(`  ratio ${name.padEnd(width)}${ratio}${least}${most}`)
  }
  for (const note of notes) console.log(`  ${note}`)
  console.log(`  ${ok ? 'floors met' : 'FLOOR MISSED'}`)
}

const args = process.argv.slice(2)
const json = args.includes('--json')
const benches = chosen(args)
if (benches === undefined) {
  console.error(`Received ${JSON.stringify(args.join(' '))}.\n\n${USAGE}`)
  process.exit(2)
}
const reports: BenchReport[] = []
for (const bench of benches) {
  if (!json) console.log(`${bench.id}: ${bench.title}`)
  const report = rounded(await bench.run(json ? () => undefined : (line) => console.log(`  ${line}`)))
  reports.push(report)
  if (!json) printTable(report)
}
if (json) console.log(JSON.stringify(reports.length === 1 ? reports[0] : reports, undefined, 2))
process.exit(reports.every(({ ok }) => ok) ? 0 : 1)
