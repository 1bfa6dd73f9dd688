import type { Bench } from './bench.ts'
import { CHECK_SCRIPT } from './http-check.ts'
import { startService } from './http-servers.ts'
import { medianOf } from './median.ts'
import { type Pressed, WrkScript } from './wrk.ts'

const ROUNDS = 5
const SECONDS = 4

/** What saturates the service, three times of that, far too much, and then what saturates it once more. */
const STEPS = [
  { name: 'saturated', connections: 64 },
  { name: 'three times as many callers', connections: 192 },
  { name: 'sixteen times as many', connections: 1024 },
  { name: 'right after that', connections: 64 },
] as const

const FLOOR = 0.9

/** Whether the service answers as much as ever under overload, and at once afterwards. */
export const overload: Bench = {
  id: 'overload',
  title:
    'checks the service answers a second when asked by more callers than it can answer at once, and right afterwards',
  async run(progress) {
    using wrk = new WrkScript(CHECK_SCRIPT)
    const service = await startService()
    const rounds = STEPS.map((): Pressed[] => [])
    try {
      await wrk.saturate(service.url, SECONDS)
      for (let round = 1; round <= ROUNDS; round++) {
        for (const [step, { name, connections }] of STEPS.entries()) {
          const pressed = await wrk.press({ url: service.url, seconds: SECONDS, connections })
          rounds[step]!.push(pressed)
          const good = Math.round(pressed.goodPerSecond).toLocaleString('en')
          progress(
            `round ${round} of ${ROUNDS}: ${name} ${good}/s, ${pressed.refused} refused, p99 ${pressed.p99Ms} ms`,
          )
        }
      }
    } finally {
      await service.stop()
    }
    // Of each round, because what is compared ran next to each other then.
    const ratioOf = (step: number): number =>
      medianOf(rounds[step]!.map(({ goodPerSecond }, round) => goodPerSecond / rounds[0]![round]!.goodPerSecond))
    const ratios = Object.fromEntries(STEPS.slice(1).map(({ name }, index) => [name, ratioOf(index + 1)]))
    const floor = { [STEPS[1].name]: FLOOR, [STEPS[3].name]: FLOOR }
    return {
      id: 'overload',
      results: STEPS.map(({ name }, step) => ({
        name,
        opsPerSecond: Math.round(medianOf(rounds[step]!.map(({ goodPerSecond }) => goodPerSecond))),
      })),
      ratios,
      floor,
      ok: Object.entries(floor).every(([name, least]) => ratios[name]! >= least),
      notes: STEPS.map(({ name }, step) => {
        const refused = rounds[step]!.reduce((sum, pressed) => sum + pressed.refused, 0)
        return `${name}: ${refused} refused, p99 ${medianOf(rounds[step]!.map(({ p99Ms }) => p99Ms))} ms`
      }),
    }
  },
}
