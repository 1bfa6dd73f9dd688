import { isLess, type Remaining } from '../../limiter/decision.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Failure } from '../../store/store.ts'
import { DescriptorBatch } from './descriptor-batch.ts'
import type { DescriptorCode, DescriptorDecision, DescriptorMetadata, DescriptorStatus } from './descriptor-decision.ts'
import { LARGEST_PER_UNIT } from './descriptor-limit.ts'
import type { DescriptorRequest, RequestDescriptor } from './descriptor-request.ts'
import type { CurrentLimit, DescriptorRule } from './descriptor-rule.ts'
import type { DescriptorMatch, DescriptorTree, MatchKind } from './descriptor-tree.ts'

/** One descriptor of a request: its match, its batch and, in the end, its status. */
class AskedDescriptor implements DescriptorStatus {
  code: DescriptorCode = 'ok'
  isOver = false
  denies = false
  matched: MatchKind | 'replaced'
  limit: CurrentLimit | undefined = undefined
  remaining: Remaining
  resetAfterSeconds = 0
  readonly rule: DescriptorRule | undefined
  readonly #key: string
  readonly #units: number
  readonly #isRefund: boolean
  #batch: DescriptorBatch | undefined = undefined
  #index = 0

  constructor(match: DescriptorMatch, units: number, isRefund: boolean) {
    this.matched = match.kind
    this.rule = match.rule
    this.remaining = match.kind === 'unlimited' ? LARGEST_PER_UNIT : 0
    this.#key = match.key
    this.#units = units
    this.#isRefund = isRefund
  }

  get isQuota(): boolean {
    return this.rule?.quota === true && this.matched !== 'replaced' && !this.#isRefund
  }

  /** Units to return before the decision. Undefined if it charges units. */
  get refund(): DescriptorRefund | undefined {
    if (!this.#isRefund || this.matched !== 'limit' || this.#units === 0) return undefined
    return { limit: this.rule!.limit!, key: this.#key, units: this.#units }
  }

  /** Whether its limit alone decides the request. */
  get isEnforced(): boolean {
    return this.rule?.quota !== true && this.rule?.shadow !== true
  }

  addTo(batch: DescriptorBatch): void {
    this.#batch = batch
    this.#index = batch.add(this.rule!.limit!, this.#key, this.#isRefund ? 0 : this.#units)
  }

  /** Whether a batch contains its counter. */
  isCountedIn(batch: DescriptorBatch): boolean {
    return batch.indexOf(this.rule!.limit!, this.#key) >= 0
  }

  judge(): void {
    if (this.#batch !== undefined && !this.#isRefund) this.isOver = this.#batch.isOver(this.#index)
  }

  /** Sets the status, once it is known whether the request is allowed. */
  finish(isDeniedForQuotas: boolean): void {
    const batch = this.#batch
    if (batch === undefined) return
    this.limit = this.rule!.current
    this.remaining = batch.remaining(this.#index)
    this.resetAfterSeconds = batch.resetAfterSeconds(this.#index)
    if (!this.isOver || this.rule!.shadow) return
    this.code = 'over'
    this.denies = this.isEnforced || isDeniedForQuotas
  }
}

/** Units of a counter to return. */
export interface DescriptorRefund {
  readonly limit: Limit
  readonly key: string
  readonly units: number
}

/** How the units of a request are charged. */
export type DescriptorCharge = 'allowed' | 'always'

interface DescriptorPlanOptions {
  readonly charge: DescriptorCharge
  readonly isUrgent: boolean
}

const NONE: readonly DescriptorBatch[] = []

/** The batches that a request needs, and how to interpret their decisions. */
export class DescriptorPlan {
  readonly batches: DescriptorBatch[] = []
  readonly #asked: AskedDescriptor[] = []
  readonly #charge: DescriptorCharge
  readonly #isUrgent: boolean
  #isDenied = false
  #isDeniedForQuotas = false

  constructor(tree: DescriptorTree, request: DescriptorRequest, { charge, isUrgent }: DescriptorPlanOptions) {
    this.#charge = charge
    this.#isUrgent = isUrgent
    const { descriptors, domain } = request
    const units = Math.max(1, request.hitsAddend ?? 1)
    for (let index = 0; index < descriptors.length; index++) {
      const descriptor = descriptors[index]!
      const { hitsAddend = units, isNegativeHits = false } = descriptor
      this.#asked.push(new AskedDescriptor(matchOf(tree, domain, descriptor), hitsAddend, isNegativeHits))
    }
    this.#dropReplaced()
    for (let index = 0; index < this.#asked.length; index++) this.#place(this.#asked[index]!)
  }

  /** Units to return before the batches are sent. Undefined if there are none. */
  refunds(): readonly DescriptorRefund[] | undefined {
    let refunds: DescriptorRefund[] | undefined
    for (let index = 0; index < this.#asked.length; index++) {
      const { refund } = this.#asked[index]!
      if (refund === undefined) continue
      refunds ??= []
      refunds.push(refund)
    }
    return refunds
  }

  /** Reads the decisions. If the request is denied, return what was charged, see `owed`. */
  judge(): void {
    let quotas = 0
    let quotasOver = 0
    for (let index = 0; index < this.#asked.length; index++) {
      const asked = this.#asked[index]!
      asked.judge()
      if (asked.isEnforced && asked.isOver) this.#isDenied = true
      if (!asked.isQuota) continue
      quotas++
      // A limit in shadow reports that units remain.
      if (asked.isOver && !asked.rule!.shadow) quotasOver++
    }
    this.#isDeniedForQuotas = quotas > 0 && quotasOver === quotas
    if (this.#isDeniedForQuotas) this.#isDenied = true
  }

  /** Batches whose units a denied request must return. What only takes what remains keeps it. */
  get owed(): readonly DescriptorBatch[] {
    return this.#isDenied ? this.batches.filter(({ isCharged, batch }) => isCharged && !batch.partial) : NONE
  }

  /** The decision. Call `judge` first. */
  decision(): DescriptorDecision {
    let least: AskedDescriptor | undefined
    let metadata: DescriptorMetadata | undefined
    for (let index = 0; index < this.#asked.length; index++) {
      const asked = this.#asked[index]!
      asked.finish(this.#isDeniedForQuotas)
      const given = asked.rule?.metadata
      if (given !== undefined && asked.matched === 'limit' && asked.code === 'ok')
        metadata = metadata === undefined ? given : merged(metadata, given)
      if (asked.limit !== undefined && (least === undefined || isLess(asked.remaining, least.remaining))) least = asked
    }
    const failed = this.batches.find(({ batch }) => batch.failure !== undefined)
    return new Answered(this.#isDenied ? 'over' : 'ok', this.#asked, {
      least,
      metadata,
      failure: failed?.batch.failure,
    })
  }

  /** Removes limits whose names are replaced by others of the request. A limit that the request carries has no name. */
  #dropReplaced(): void {
    for (let index = 0; index < this.#asked.length; index++) {
      const { rule } = this.#asked[index]!
      if (rule === undefined || rule.replaces.length === 0) continue
      for (const other of this.#asked) {
        const name = other.rule?.name
        if (other.rule?.limit !== undefined && name !== undefined && rule.replaces.includes(name))
          other.matched = 'replaced'
      }
    }
  }

  /** Enforced limits share one batch. Limits in shadow, and those that take what remains, are decided separately. */
  #place(asked: AskedDescriptor): void {
    if (asked.matched !== 'limit') return
    const partial = this.#charge === 'always' || asked.rule!.drain
    const isTogether = asked.isEnforced && !partial
    const isShadow = asked.rule!.shadow
    for (const batch of this.batches) {
      const fits = isTogether
        ? batch.isTogether
        : !batch.isTogether && batch.isLike({ isShadow, partial }) && asked.isCountedIn(batch)
      if (fits) {
        asked.addTo(batch)
        return
      }
    }
    const batch = new DescriptorBatch({ isTogether, isShadow, partial })
    batch.batch.isUrgent = this.#isUrgent
    this.batches.push(batch)
    asked.addTo(batch)
  }
}

class Answered implements DescriptorDecision {
  readonly code: DescriptorCode
  readonly statuses: readonly DescriptorStatus[]
  readonly least: DescriptorStatus | undefined
  readonly metadata: DescriptorMetadata | undefined
  readonly failure: Failure | undefined

  constructor(
    code: DescriptorCode,
    statuses: readonly DescriptorStatus[],
    { least, metadata, failure }: Pick<DescriptorDecision, 'least' | 'metadata' | 'failure'>,
  ) {
    this.code = code
    this.statuses = statuses
    this.least = least
    this.metadata = metadata
    this.failure = failure
  }
}

/** Merges two metadata objects. Of two values with the same name, the first one wins; objects are merged. */
function merged(first: DescriptorMetadata, second: DescriptorMetadata): DescriptorMetadata {
  const all: Record<string, unknown> = { ...first }
  for (const [name, value] of Object.entries(second)) {
    const before = all[name]
    if (!Object.hasOwn(all, name)) all[name] = value
    else if (isObject(before) && isObject(value)) all[name] = merged(before, value)
  }
  return all
}

function isObject(value: unknown): value is DescriptorMetadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function matchOf(tree: DescriptorTree, domain: string, { entries, limit }: RequestDescriptor): DescriptorMatch {
  return limit === undefined ? tree.lookup(domain, entries) : tree.matchRequestLimit(domain, entries, limit)
}
