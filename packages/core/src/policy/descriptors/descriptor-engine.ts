import { LATEST } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import { settle } from '../../limiter/release-listeners.ts'
import { deliver } from '../../limiter/rule-limiter.ts'
import { checkOptionNames, type OptionTaker } from '../../options/known-options.ts'
import type { Answer, Mode, Settlement, Store } from '../../store/store.ts'
import type { DescriptorBatch } from './descriptor-batch.ts'
import type { DescriptorDecision } from './descriptor-decision.ts'
import { type DescriptorCharge, DescriptorPlan, type DescriptorRefund } from './descriptor-plan.ts'
import { checkDescriptorRequest, type DescriptorRequest } from './descriptor-request.ts'
import type { DescriptorTree } from './descriptor-tree.ts'

/** The limits, and where their counters are kept. */
export interface DescriptorSource<M extends Mode> {
  readonly store: Store<M>
  readonly tree: DescriptorTree
}

/** How to decide a request. */
export interface DescriptorOptions {
  /**
   * Default: `allowed`, so a denied request costs nothing. `always`: the charge is for something that has already
   * happened, such as the tokens of an answer that was sent. Then each limit is charged separately, whatever the others
   * decide; a limit with fewer remaining units is used up and reported as over.
   */
  readonly charge?: DescriptorCharge
  /** Whether the store must answer within its `urgentDeadlineMs`. Default: false. */
  readonly isUrgent?: boolean
}

/**
 * Decides a request with descriptors, as defined by the Envoy rate limit protocol.
 *
 * - All limits that are neither in shadow nor in quota mode are charged in one atomic step, or none is. Limits in
 *   shadow and in quota mode are decided separately. Their charges are returned when the request is denied, so a denied
 *   request costs nothing; until then other requests see these units as used.
 * - A limit with `drain` is charged separately: of more hits than remain it takes what remains, and keeps it although
 *   the request is denied.
 * - A request is denied if any limit that is neither in shadow nor in quota mode is over, or if all limits in quota
 *   mode are.
 * - Descriptors with the same key add up. A descriptor with 0 units does not charge, and is over if nothing remains.
 * - Descriptors with `isNegativeHits` return their units first, each counter separately.
 * - Unknown domains and descriptors without a matching rule do not limit.
 *
 * Throws `SLUICE_INVALID_OPTION` if the domain is empty or there are no descriptors. Rejects like the store if the
 * store fails. Limits in shadow never cause a failure.
 */
export function decideDescriptors<M extends Mode>(
  source: DescriptorSource<M>,
  request: DescriptorRequest,
  options?: DescriptorOptions,
): Answer<M, DescriptorDecision> {
  checkDescriptorRequest(request)
  const { store, tree } = source
  const plan = new DescriptorPlan(tree, request, { charge: chargeOf(options), isUrgent: options?.isUrgent ?? false })
  if (plan.batches.length === 0) return deliver(store, plan.decision())
  if (store.mode === 'sync') return decideNow(store as Store<'sync'>, plan) as Answer<M, DescriptorDecision>
  return decideLater(store as Store<'async'>, plan) as Answer<M, DescriptorDecision>
}

const TAKER: OptionTaker = {
  name: 'PolicyEngine.decideDescriptors',
  options: ['charge', 'isUrgent'],
  example: "{ charge: 'always' }",
}

function chargeOf(options: DescriptorOptions | undefined): DescriptorCharge {
  if (options !== undefined) checkOptionNames(options, TAKER)
  const charge = options?.charge ?? 'allowed'
  if (charge === 'allowed' || charge === 'always') return charge
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"charge" cannot be used',
    received: charge,
    expected: "'allowed' or 'always'",
  })
}

function decideNow(store: Store<'sync'>, plan: DescriptorPlan): DescriptorDecision {
  for (const refund of plan.refunds() ?? []) giveUnits(store, refund)
  for (const { batch } of plan.batches) store.decide(batch)
  plan.judge()
  for (const batch of plan.owed) store.settle(batch.giveBack(), nothingOf(batch))
  return plan.decision()
}

async function decideLater(store: Store<'async'>, plan: DescriptorPlan): Promise<DescriptorDecision> {
  const { batches } = plan
  const refunds = plan.refunds()
  if (refunds !== undefined) await Promise.all(refunds.map((refund) => giveUnits(store, refund)))
  if (batches.length === 1 && !batches[0]!.isShadow) await store.decide(batches[0]!.batch)
  else await decideAll(store, batches)
  plan.judge()
  const { owed } = plan
  if (owed.length > 0) await giveBack(store, owed)
  return plan.decision()
}

/** Sends all batches at once. If a required one fails, the charges of the others are returned. */
async function decideAll(store: Store<'async'>, batches: readonly DescriptorBatch[]): Promise<void> {
  const outcomes = await Promise.allSettled(batches.map(({ batch }) => store.decide(batch)))
  let failed: PromiseRejectedResult | undefined
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') continue
    const batch = batches[index]!
    batch.isAnswered = false
    if (!batch.isShadow) failed ??= outcome
  }
  if (failed === undefined) return
  await giveBack(
    store,
    batches.filter(({ isCharged }) => isCharged),
  )
  throw failed.reason
}

/** A denial stands even if units cannot be returned: they count as used until the window ends, which admits nothing. */
async function giveBack(store: Store<'async'>, charged: readonly DescriptorBatch[]): Promise<void> {
  await Promise.allSettled(charged.map((batch) => store.settle(batch.giveBack(), nothingOf(batch))))
}

/** Returns the most recently used units. The store never returns more than was used. */
function giveUnits<M extends Mode>(store: Store<M>, { limit, key, units }: DescriptorRefund): Answer<M, Settlement> {
  const charges = [{ limit, key, at: LATEST, cost: units, mark: 0 }]
  return settle(store, { holder: 0, held: false, leaseMicros: 0, charges }, [0])
}

function nothingOf({ batch }: DescriptorBatch): readonly number[] {
  return batch.items.map(() => 0)
}
