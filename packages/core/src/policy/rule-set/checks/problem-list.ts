import type { RuleSetProblem } from '../rule-set-error.ts'

/** Properties of something in a document, as far as it is known: any name, any value. */
export type Properties = Readonly<Record<string, unknown>>

/** Maximum number of problems listed, the last of which says that there are more. */
const MOST_PROBLEMS = 1001

/**
 * The problems of a document: those of its form, and after them those of its meaning, which is looked at only where the
 * form is right.
 */
export class ProblemList {
  readonly #problems: RuleSetProblem[]
  /** Places with a problem at them, and those with one at them or below. */
  readonly #wrong = new Set<string>()
  readonly #touched = new Set<string>()

  /** `problems` of the form. */
  constructor(problems: readonly RuleSetProblem[]) {
    this.#problems = [...problems]
    for (const { path } of problems) {
      this.#wrong.add(path)
      for (let end = path.length; end >= 0; end = path.lastIndexOf('/', end - 1)) {
        this.#touched.add(path.slice(0, end))
        if (end === 0) break
      }
    }
  }

  add(path: string, received: string, expected: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push({ path, received, expected })
  }

  /** True when the form is right at `path` and everywhere below. */
  isSound(path: string): boolean {
    return this.#touched.size === 0 || !this.#touched.has(path)
  }

  /** True when what stands at `path` itself cannot be used; below it nothing is known. */
  isWrong(path: string): boolean {
    return this.#wrong.has(path)
  }

  /** In the order in which they were found. */
  get all(): readonly RuleSetProblem[] {
    return this.#problems
  }

  /** All problems by their place: first by part, in the order of `parts`, then by number; else as they were found. */
  inOrder(parts: readonly string[]): readonly RuleSetProblem[] {
    const places = new Map(parts.map((part, index) => [part, index]))
    const keyed = this.#problems.map((problem) => {
      const [, part = '', entry = ''] = problem.path.split('/', 3)
      return { problem, part: part === '' ? -1 : (places.get(part) ?? places.size), entry: Number(entry) || 0 }
    })
    keyed.sort((one, other) => one.part - other.part || one.entry - other.entry)
    return keyed.map(({ problem }) => problem)
  }
}

/** The entries of a list that are objects, with their places; none when it is no list. */
export function* objectsIn(list: unknown, path: string): Generator<readonly [entry: Properties, path: string]> {
  if (!Array.isArray(list)) return
  for (let index = 0; index < list.length; index++) {
    const entry: unknown = list[index]
    if (typeof entry === 'object' && entry !== null) yield [entry as Properties, `${path}/${index}`]
  }
}
