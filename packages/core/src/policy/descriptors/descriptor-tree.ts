import { durationMs } from '../../rule/duration.ts'
import type { Limit } from '../../rule/limit.ts'
import type { DescriptorDomain, DescriptorLimit, DescriptorNode } from '../rule-set/descriptor-domain.ts'
import { RuleSetError } from '../rule-set/rule-set-error.ts'
import type { RequestsPerUnit } from './descriptor-limit.ts'
import { DomainLimits, unitMs, unitOf } from './descriptor-limit.ts'
import type { CurrentLimit, DescriptorEntry } from './descriptor-rule.ts'
import { CounterKeys, DescriptorRule, keyOfEntries, ValuePattern } from './descriptor-rule.ts'

/**
 * Result of a lookup. `unknown-domain`: there is no such domain. `none`: no limit for these entries. `unlimited`: a
 * rule that does not limit. `limit`: a rule and its counter key.
 */
export type MatchKind = 'unknown-domain' | 'none' | 'unlimited' | 'limit'

/** What a lookup found. */
export class DescriptorMatch {
  readonly kind: MatchKind
  /** Undefined if none was found. */
  readonly rule: DescriptorRule | undefined
  /** The key of the counter; empty unless the kind is `limit`. */
  readonly key: string

  constructor(kind: MatchKind, rule: DescriptorRule | undefined, key: string) {
    this.kind = kind
    this.rule = rule
    this.key = key
  }
}

const UNKNOWN_DOMAIN = new DescriptorMatch('unknown-domain', undefined, '')

const NO_MATCH = new DescriptorMatch('none', undefined, '')

/** The nodes of one level with the same key. */
class KeyNodes {
  readonly #exact = new Map<string, TreeNode>()
  readonly #patterns: { readonly pattern: ValuePattern; readonly node: TreeNode }[] = []
  #any: TreeNode | undefined

  /** False if there already is one for this value. */
  add(value: string, node: TreeNode): boolean {
    const before = value === '' ? this.#any : this.#exact.get(value)
    if (before !== undefined) return false
    if (value === '') this.#any = node
    else this.#exact.set(value, node)
    if (value.includes('*')) this.#patterns.push({ pattern: new ValuePattern(value), node })
    return true
  }

  /** The node with exactly this value, else the first with a matching pattern, else the one for any value. */
  find(value: string): TreeNode | undefined {
    const exact = this.#exact.get(value)
    if (exact !== undefined) return exact
    for (let index = 0; index < this.#patterns.length; index++) {
      const { pattern, node } = this.#patterns[index]!
      if (pattern.matches(value)) return node
    }
    return this.#any
  }
}

type Level = ReadonlyMap<string, KeyNodes>

/** A compiled node. */
class TreeNode {
  readonly children: Level | undefined
  /** The match, if it is the same for all requests. */
  readonly #match: DescriptorMatch | undefined
  readonly #rule: DescriptorRule | undefined
  readonly #keys: CounterKeys | undefined

  constructor(children: Level | undefined, rule: DescriptorRule | undefined, keys: CounterKeys | undefined) {
    this.children = children
    this.#rule = rule
    this.#keys = keys
    if (rule === undefined) this.#match = NO_MATCH
    else if (rule.limit === undefined) this.#match = new DescriptorMatch('unlimited', rule, '')
    else if (keys?.only !== undefined) this.#match = new DescriptorMatch('limit', rule, keys.only)
    else this.#match = undefined
  }

  match(entries: readonly DescriptorEntry[]): DescriptorMatch {
    return this.#match ?? new DescriptorMatch('limit', this.#rule, this.#keys!.of(entries))
  }
}

/** The tree of one domain. */
class DomainTree {
  readonly level: Level
  readonly #domain: string
  readonly #limits: DomainLimits

  constructor({ domain, descriptors }: DescriptorDomain, pointer: string) {
    this.#domain = domain
    this.#limits = new DomainLimits(domain)
    this.level = this.#compileLevel(descriptors, [], pointer)
  }

  matchRequestLimit(entries: readonly DescriptorEntry[], terms: RequestsPerUnit): DescriptorMatch {
    const { unit, requestsPerUnit } = terms
    const current = { unit, requestsPerUnit, name: undefined }
    const rule = this.#createRule([], current, this.#limits.of(terms))
    return new DescriptorMatch('limit', rule, keyOfEntries(this.#domain, entries))
  }

  #compileLevel(nodes: readonly DescriptorNode[], above: readonly DescriptorNode[], pointer: string): Level {
    const level = new Map<string, KeyNodes>()
    for (const [index, node] of nodes.entries()) {
      const place = `${pointer}/descriptors/${index}`
      const keyNodes = level.get(node.key) ?? new KeyNodes()
      level.set(node.key, keyNodes)
      if (keyNodes.add(node.value ?? '', this.#compileNode(node, [...above, node], place))) continue
      throw unusable(
        place,
        `a second ${JSON.stringify(node.key)} with the same value`,
        'each key and value once at a level',
      )
    }
    return level
  }

  #compileNode(node: DescriptorNode, path: readonly DescriptorNode[], pointer: string): TreeNode {
    const { limit, descriptors = [] } = node
    const children = descriptors.length === 0 ? undefined : this.#compileLevel(descriptors, path, pointer)
    if (limit === undefined) return new TreeNode(children, undefined, undefined)
    if (limit.unlimited === true) return new TreeNode(children, this.#createRule(path, undefined, undefined), undefined)
    const rule = this.#compileRule(limit, path, `${pointer}/limit`)
    return new TreeNode(children, rule, new CounterKeys(this.#domain, path))
  }

  #compileRule(limit: DescriptorLimit, path: readonly DescriptorNode[], pointer: string): DescriptorRule {
    const { unit, window, requestsPerUnit, algorithm = 'fixed-window', name } = limit
    if ((unit === undefined) === (window === undefined) || requestsPerUnit === undefined) {
      const received = 'without requestsPerUnit, or without one of unit and window'
      throw unusable(pointer, received, 'requestsPerUnit with a unit or a window, or unlimited')
    }
    const windowMs = unit === undefined ? windowMsOf(window!) : unitMs(unit)
    if (windowMs === undefined) {
      const expected = 'a duration above 0 and at most 100 years, such as "30s"'
      throw unusable(`${pointer}/window`, JSON.stringify(window), expected)
    }
    const known = unit ?? unitOf(windowMs)
    const compiled =
      known !== undefined && algorithm === 'fixed-window'
        ? this.#limits.of({ unit: known, requestsPerUnit })
        : this.#limits.ofWindow({ windowMs, requestsPerUnit, algorithm })
    return this.#createRule(path, { unit: known, requestsPerUnit, name }, compiled)
  }

  #createRule(
    path: readonly DescriptorNode[],
    current: CurrentLimit | undefined,
    limit: Limit | undefined,
  ): DescriptorRule {
    return new DescriptorRule({ domain: this.#domain, path, limit, current })
  }
}

/**
 * The compiled descriptor trees of a rule set. Immutable, so that a new one can replace it between two requests.
 *
 * For each entry of a request in turn, takes the node with the same key and exactly the same value, else the first with
 * a matching pattern, else the one without a value. There is no backtracking. The limit of the last node applies, if it
 * has one: a request with more or fewer entries than the rule has levels does not match.
 */
export class DescriptorTree {
  readonly #domains = new Map<string, DomainTree>()

  /** Compiles the domains of a checked rule set. Throws `SLUICE_INVALID_RULE_SET` if one is invalid nevertheless. */
  constructor(domains: readonly DescriptorDomain[]) {
    for (const [index, domain] of domains.entries()) {
      const pointer = `/domains/${index}`
      if (this.#domains.has(domain.domain))
        throw unusable(pointer, `a second ${JSON.stringify(domain.domain)}`, 'each domain once')
      this.#domains.set(domain.domain, new DomainTree(domain, pointer))
    }
  }

  /** Finds the rule for the entries of one descriptor. Allocates nothing if there is nothing to count. */
  lookup(domain: string, entries: readonly DescriptorEntry[]): DescriptorMatch {
    const tree = this.#domains.get(domain)
    if (tree === undefined) return UNKNOWN_DOMAIN
    let level: Level | undefined = tree.level
    let node: TreeNode | undefined
    for (let index = 0; index < entries.length; index++) {
      const { key, value }: DescriptorEntry = entries[index]!
      node = level?.get(key)?.find(value)
      if (node === undefined) return NO_MATCH
      level = node.children
    }
    return node === undefined ? NO_MATCH : node.match(entries)
  }

  /**
   * The match of a descriptor with its own limit. The tree only tells whether the domain is known. It shares the
   * counter of a rule of the tree with the same unit.
   */
  matchRequestLimit(domain: string, entries: readonly DescriptorEntry[], terms: RequestsPerUnit): DescriptorMatch {
    return this.#domains.get(domain)?.matchRequestLimit(entries, terms) ?? UNKNOWN_DOMAIN
  }
}

/** Undefined if the limit is invalid. */
function windowMsOf(window: number | string): number | undefined {
  try {
    return durationMs(window, 'window')
  } catch {
    return undefined
  }
}

function unusable(path: string, received: string, expected: string): RuleSetError {
  return new RuleSetError([{ path, received, expected }])
}
