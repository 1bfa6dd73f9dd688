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

/** What decides: the limits and where their counters live. */
export interface DescriptorSource<M extends Mode> {
  readonly store: Store<M>
  readonly tree: DescriptorTree
}

/** How a request is decided. */
export interface DescriptorOptions {
  /**
   * Default: `allowed`, a denied request costs nothing. `always`: what is charged has happened already, such as the
   * tokens of an answer that was sent. Then every limit is charged on its own, whatever the others say; one that has
   * less left is used up, and says that it is over.
   */
  readonly charge?: DescriptorCharge
  /** Whether the store answers by its `urgentDeadlineMs`. Default: false. */
  readonly isUrgent?: boolean
}

/**
 * Decides a request by descriptors, as the Envoy rate limit protocol has it.
 *
 * - All limits that are neither in shadow nor in quota mode are charged together in one atomic step, or none is. Those
 *   in shadow and in quota mode are decided each on its own. What they took is given back when the request is denied,
 *   so that a denied request costs nothing anywhere; another request may meet those units in between.
 * - A limit with `drain` is charged on its own: of more hits than are left it takes what is left, and keeps it although
 *   the request is denied.
 * - It is denied when any limit that is neither in shadow nor in quota mode is over, or when every one in quota mode
 *   is.
 * - Descriptors that count under one key add up. A descriptor with 0 units only asks, and is over when nothing is left.
 * - What descriptors with `isNegativeHits` give back is given back first, each counter on its own.
 * - An unknown domain, and a descriptor that nothing was found for, limit nothing.
 *
 * `SLUICE_INVALID_OPTION` when the domain is empty or there are no descriptors; rejects as the store does when the
 * store cannot be asked. Limits in shadow never make it fail.
 */
export function decideDescriptors<M extends Mode>(
  source: DescriptorSource<M>,
  request: DescriptorRequest,
  options?: DescriptorOptions,
): Answer<M, DescriptorDecision> {
  checkDescriptorRequest(request)
  const { store, tree } = source
  const plan = new DescriptorPlan(tree, request, { charge: chargeOf(options), isUrgent: options?.isUrgent ?? false })
  if (plan.questions.length === 0) return deliver(store, plan.decision())
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
  for (const { batch } of plan.questions) store.decide(batch)
  plan.judge()
  for (const question of plan.owed) store.settle(question.giveBack(), nothingOf(question))
  return plan.decision()
}

async function decideLater(store: Store<'async'>, plan: DescriptorPlan): Promise<DescriptorDecision> {
  const { questions } = plan
  const refunds = plan.refunds()
  if (refunds !== undefined) await Promise.all(refunds.map((refund) => giveUnits(store, refund)))
  if (questions.length === 1 && !questions[0]!.isShadow) await store.decide(questions[0]!.batch)
  else await askAll(store, questions)
  plan.judge()
  const { owed } = plan
  if (owed.length > 0) await giveBack(store, owed)
  return plan.decision()
}

/** Asks everything at once. When an answer that is needed does not come, what the others took is given back. */
async function askAll(store: Store<'async'>, questions: readonly DescriptorBatch[]): Promise<void> {
  const outcomes = await Promise.allSettled(questions.map(({ batch }) => store.decide(batch)))
  let failed: PromiseRejectedResult | undefined
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') continue
    const question = questions[index]!
    question.isAnswered = false
    if (!question.isShadow) failed ??= outcome
  }
  if (failed === undefined) return
  await giveBack(
    store,
    questions.filter(({ isCharged }) => isCharged),
  )
  throw failed.reason
}

/**
 * A denial stands even when units cannot be given back: until the window ends they count as used, which admits nothing.
 */
async function giveBack(store: Store<'async'>, charged: readonly DescriptorBatch[]): Promise<void> {
  await Promise.allSettled(charged.map((question) => store.settle(question.giveBack(), nothingOf(question))))
}

/** Gives back what was used last. The store never gives back more than was used. */
function giveUnits<M extends Mode>(store: Store<M>, { limit, key, units }: DescriptorRefund): Answer<M, Settlement> {
  const charges = [{ limit, key, at: LATEST, cost: units, mark: 0 }]
  return settle(store, { holder: 0, held: false, leaseMicros: 0, charges }, [0])
}

function nothingOf({ batch }: DescriptorBatch): readonly number[] {
  return batch.items.map(() => 0)
}
