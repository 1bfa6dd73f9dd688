import { durationMs, nearestName, type ProblemList, parseCidr } from '@sluice/core/internal'
import type { RuleSetProblem } from '@sluice/core/policy'
import type { TimeoutsConfig } from './gateway-config.ts'

/** What the checks of all parts share. */
export class GatewayCheck {
  readonly folder: string
  readonly #problems: ProblemList

  constructor(problems: ProblemList, folder: string) {
    this.#problems = problems
    this.folder = folder
  }

  get problems(): readonly RuleSetProblem[] {
    return this.#problems.all
  }

  add(path: string, received: string, expected: string): void {
    this.#problems.add(path, received, expected)
  }

  /** Whether the form is right at a path and everywhere below. */
  isSound(path: string): boolean {
    return this.#problems.isSound(path)
  }

  /** Checks that a name is known. `what`: such as `an upstream`. */
  name(path: string, name: string, { known, what }: { known: readonly string[]; what: string }): void {
    if (known.includes(name)) return
    const nearest = nearestName(name, known)
    const list = known.length === 0 ? 'there is none' : `there are ${known.slice(0, 12).join(', ')}`
    const hint = nearest === undefined ? `; ${list}` : `; did you mean "${nearest}"?`
    this.add(path, JSON.stringify(name), `the name of ${what}${hint}`)
  }

  /** Checks that a duration is above 0 and not beyond all bounds. */
  duration(path: string, value: number | string | undefined): void {
    if (value === undefined) return
    try {
      durationMs(value, 'duration')
    } catch {
      this.add(path, JSON.stringify(value), 'a duration above 0 and at most 100 years')
    }
  }

  timeouts(path: string, timeouts: TimeoutsConfig | undefined): void {
    for (const [name, value] of Object.entries(timeouts ?? {})) this.duration(`${path}/${name}`, value)
  }

  networks(path: string, networks: readonly string[] | undefined): void {
    for (const [index, text] of (networks ?? []).entries()) {
      const cidr = parseCidr(text)
      if ('problem' in cidr) this.add(`${path}/${index}`, JSON.stringify(text), `addresses: ${cidr.problem}`)
    }
  }

  /** Checks that no value of a list comes twice. */
  unique(values: readonly (readonly [path: string, value: string])[], expected: string): void {
    const first = new Map<string, string>()
    for (const [path, value] of values) {
      const other = first.get(value)
      if (other === undefined) first.set(value, path)
      else this.add(path, JSON.stringify(value), `${expected}: ${other} has it already`)
    }
  }
}
