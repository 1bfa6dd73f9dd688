import { invalidOption } from '../option-range.ts'
import { type Label, OTHER } from './metric-definition.ts'

/** Options of {@link SeriesTable}. */
export interface SeriesTableOptions<Series> {
  readonly labels: readonly Label[]
  readonly mostSeries: number
  /** Creates the series of a new label combination. */
  readonly make: () => Series
  /**
   * Called for every lookup that ended at a series of {@link OTHER}, because its values are unknown or over the limit.
   */
  readonly onOverflow: () => void
}

/** A label combination and its series. */
export interface SeriesEntry<Series> {
  /** In declaration order. */
  readonly values: readonly string[]
  readonly series: Series
}

interface Node<Series> {
  readonly children: Map<string, Node<Series>>
  entry: SeriesEntry<Series> | undefined
}

const LONGEST_VALUE = 200

/**
 * The series of one metric by label values: at most `mostSeries`, plus one for each combination of the values of closed
 * labels, with {@link OTHER} for the rest.
 *
 * A tree with one level per label: combinations cannot be confused, whatever characters they contain, and a lookup
 * allocates no string.
 */
export class SeriesTable<Series> {
  readonly #options: SeriesTableOptions<Series>
  readonly #names: readonly string[]
  readonly #root: Node<Series> = { children: new Map(), entry: undefined }
  readonly #entries: SeriesEntry<Series>[] = []

  constructor(options: SeriesTableOptions<Series>) {
    this.#options = options
    this.#names = options.labels.map((label) => label.name)
  }

  /** The series of these values: exactly one per label. Only the first 200 characters of a value count. */
  find(values: Readonly<Record<string, string>>): Series {
    let given = 0
    for (const name in values) if (Object.hasOwn(values, name)) given++
    if (given !== this.#names.length) throw this.#wrongLabels(values)
    let node = this.#root
    for (const name of this.#names) {
      const child = node.children.get(values[name] as string)
      if (child === undefined) return this.#findOrMake(values)
      node = child
    }
    return node.entry === undefined ? this.#findOrMake(values) : node.entry.series
  }

  /** All series, in order of creation. */
  entries(): readonly SeriesEntry<Series>[] {
    return this.#entries
  }

  #findOrMake(values: Readonly<Record<string, string>>): Series {
    const { labels, mostSeries, onOverflow } = this.#options
    const cleaned = labels.map((label) => this.#clean(label.name, values))
    const known = cleaned.map((value, index) => (labels[index]?.values?.has(value) === false ? OTHER : value))
    const hasRoom = this.#entries.length < mostSeries || this.#nodeOf(known)?.entry !== undefined
    const counted = hasRoom ? known : known.map((value, index) => (labels[index]?.values === undefined ? OTHER : value))
    const entry = this.#make(counted)
    if (counted.some((value, index) => value !== cleaned[index])) onOverflow()
    return entry.series
  }

  #clean(name: string, values: Readonly<Record<string, string>>): string {
    const value = values[name]
    if (value === undefined) throw this.#wrongLabels(values)
    if (typeof value !== 'string') throw invalidOption(`label ${name}`, value, 'text')
    // A lone surrogate cannot be written, and two values that are written alike would be one series twice.
    return value.slice(0, LONGEST_VALUE).toWellFormed()
  }

  #nodeOf(values: readonly string[]): Node<Series> | undefined {
    let node: Node<Series> | undefined = this.#root
    for (const value of values) node = node?.children.get(value)
    return node
  }

  /** Finds or creates the entry of these values. */
  #make(values: readonly string[]): SeriesEntry<Series> {
    let node = this.#root
    for (const value of values) {
      let child = node.children.get(value)
      if (child === undefined) {
        child = { children: new Map(), entry: undefined }
        node.children.set(value, child)
      }
      node = child
    }
    if (node.entry === undefined) {
      node.entry = { values, series: this.#options.make() }
      this.#entries.push(node.entry)
    }
    return node.entry
  }

  #wrongLabels(values: Readonly<Record<string, string>>): Error {
    const names = (list: readonly string[]): string => (list.length === 0 ? 'none' : list.join(', '))
    return invalidOption('labels', names(Object.keys(values)), `a value for each of: ${names(this.#names)}`)
  }
}
