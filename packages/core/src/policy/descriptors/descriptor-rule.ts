import type { Limit } from '../../rule/limit.ts'
import { joinKey, LONGEST_KEY } from '../../store/key.ts'
import { sha256 } from '../limits/sha256.ts'
import type { DescriptorNode, DescriptorUnit } from '../rule-set/descriptor-domain.ts'

/** One entry of a request's descriptor. The value may be empty. */
export interface DescriptorEntry {
  readonly key: string
  readonly value: string
}

/** A limit as reported to callers. */
export interface CurrentLimit {
  /** Undefined if its window is not a unit. */
  readonly unit: DescriptorUnit | undefined
  readonly requestsPerUnit: number
  readonly name: string | undefined
}

/** Parts of a {@link DescriptorRule}. */
interface DescriptorRuleParts {
  readonly domain: string
  /** The nodes from the root to the one with the limit; empty if the request carries the limit. */
  readonly path: readonly DescriptorNode[]
  /** Undefined if it does not limit. */
  readonly limit: Limit | undefined
  readonly current: CurrentLimit | undefined
}

/** A compiled node of a descriptor tree that has a limit. */
export class DescriptorRule {
  /** Undefined if it does not limit. */
  readonly limit: Limit | undefined
  /** Undefined if it does not limit. */
  readonly current: CurrentLimit | undefined
  /** Undefined if it has none. */
  readonly name: string | undefined
  /** Names of limits that are dropped from a request that this one matches too. */
  readonly replaces: readonly string[]
  readonly shadow: boolean
  readonly quota: boolean
  /** Whether a call with more units than remain takes what remains. */
  readonly drain: boolean
  /** Metadata that is returned with the decision. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly #metricParts: readonly (string | undefined)[]
  readonly #domain: string

  constructor({ domain, path, limit, current }: DescriptorRuleParts) {
    const node = path.at(-1)
    this.limit = limit
    this.current = current
    this.name = node?.limit?.name
    this.replaces = node?.limit?.replaces ?? []
    this.shadow = node?.shadow ?? false
    this.quota = node?.quota ?? false
    this.drain = node?.limit?.drain ?? false
    this.metadata = node?.metadata
    this.#domain = domain
    this.#metricParts = path.map((each) => metricPart(each, node?.detailedMetric ?? false))
  }

  /**
   * Name for metrics: `domain.key_value.key_value`. Contains values of the tree; values of the request only with
   * `detailedMetric` or `valueToMetric`.
   */
  metricName(entries: readonly DescriptorEntry[]): string {
    let name = this.#domain
    for (let index = 0; index < entries.length; index++) {
      const { key, value } = entries[index]!
      const asked = value === '' ? key : `${key}_${value}`
      name += `.${this.#metricParts[index] ?? asked}`
    }
    return name
  }
}

/** What one level adds to the metric name. Undefined for the value of the request. */
function metricPart(
  { key, value = '', shareThreshold, valueToMetric }: DescriptorNode,
  detailed: boolean,
): string | undefined {
  const isNamed = value !== '' && (shareThreshold === true || !value.includes('*'))
  if (isNamed) return `${key}_${value}`
  if (detailed || valueToMetric === true) return undefined
  return value === '' ? key : `${key}_${value}`
}

/**
 * The counter keys of one rule: the domain and all pairs of key and value by `joinKey`, with the pattern in place of
 * values that share a counter. Constant parts are joined once.
 */
export class CounterKeys {
  /** The only key. Undefined if the key depends on the request. */
  readonly only: string | undefined
  /** Text before each value of the request, and after the last one. */
  readonly #texts: readonly string[]
  /** Indexes of the entries with these values. */
  readonly #indexes: readonly number[]

  constructor(domain: string, path: readonly DescriptorNode[]) {
    const texts: string[] = []
    const indexes: number[] = []
    let text = joinKey([domain])
    for (const [index, { key, value = '', shareThreshold }] of path.entries()) {
      text += joinKey([key])
      if (value !== '' && (shareThreshold === true || !value.includes('*'))) {
        text += joinKey([value])
        continue
      }
      texts.push(text)
      indexes.push(index)
      text = ''
    }
    texts.push(text)
    this.#texts = texts
    this.#indexes = indexes
    this.only = indexes.length === 0 ? shortened(text) : undefined
  }

  of(entries: readonly DescriptorEntry[]): string {
    let key = this.#texts[0]!
    for (let index = 0; index < this.#indexes.length; index++) {
      const { value } = entries[this.#indexes[index]!]!
      key += `${value.length}:${value}${this.#texts[index + 1]!}`
    }
    return shortened(key)
  }
}

/** The key of a limit that the request carries. A rule of the tree would count the same entries under the same key. */
export function keyOfEntries(domain: string, entries: readonly DescriptorEntry[]): string {
  let joined = joinKey([domain])
  for (const { key, value } of entries) joined += `${key.length}:${key}${value.length}:${value}`
  return shortened(joined)
}

/**
 * Callers control the length of values, and a long value must not bypass its limit. A joined key starts with a digit,
 * so a shortened one cannot collide with it.
 */
function shortened(key: string): string {
  return key.length <= LONGEST_KEY ? key : `#${sha256(key)}`
}

/** A value with `*`, each of which matches any number of characters. */
export class ValuePattern {
  readonly #first: string
  readonly #middle: readonly string[]
  readonly #last: string

  /** `text` has at least one `*`. */
  constructor(text: string) {
    const parts = text.split('*')
    this.#first = parts[0]!
    this.#middle = parts.slice(1, -1).filter((part) => part !== '')
    this.#last = parts.at(-1)!
  }

  /** Whether a value matches. Does not backtrack, so no value makes it slow. */
  matches(value: string): boolean {
    const end = value.length - this.#last.length
    let at = this.#first.length
    if (at > end || !value.startsWith(this.#first) || !value.endsWith(this.#last)) return false
    for (const part of this.#middle) {
      const found = value.indexOf(part, at)
      if (found < 0 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }
}
