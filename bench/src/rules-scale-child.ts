import { memoryStore } from '@sluice/core'
import { PolicyEngine, type PolicyRule } from '@sluice/core/policy'
import { keySequence, skewedSequence } from './key-sequence.ts'

// Decides requests under a number of rules and overrides, in a process of its own. Started by the rules-scale bench.

const LIMIT = 1_000_000
const CALLERS = 10_000
const IDS = 1_000_000

const [rules = '', overrides = '', spread = '', calls = '', passes = ''] = process.argv.slice(2)
const ruleCount = Number(rules)

function ruleOf(index: number): PolicyRule {
  return { resource: `/service-${index}/orders/:id`, dimension: 'user', limit: LIMIT, window: '1m' }
}

function heapAndBuffers(): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const engine = new PolicyEngine({
  store: memoryStore(),
  ruleSet: { rules: Array.from({ length: ruleCount }, (_, index) => ruleOf(index)) },
})
const before = heapAndBuffers()
const loadStarted = performance.now()
for (let entity = 0; entity < Number(overrides); entity++) {
  // Every caller of the bench has one, among all the others, for a resource that it calls.
  engine.entries.putOverride({
    dimension: 'user',
    entity: `user-${entity}`,
    resource: `/service-${entity % ruleCount}/orders/:id`,
    terms: { limit: LIMIT + (entity % 100) },
  })
}
const loadMs = performance.now() - loadStarted
const bytes = heapAndBuffers() - before

const sequence = (spread === 'even' ? keySequence : skewedSequence)(Number(calls), CALLERS)
const ids = keySequence(Number(calls), IDS)
let best = 0
for (let pass = 0; pass < Number(passes); pass++) {
  const started = performance.now()
  for (let call = 0; call < sequence.length; call++) {
    // As many counters whatever the number of rules: a caller always calls the same service, each time another order.
    const caller = sequence[call]!
    const request = {
      resource: `/service-${caller % ruleCount}/orders/${ids[call]}`,
      method: 'GET',
      user: `user-${caller}`,
    }
    if (!engine.check(request).allowed) throw new Error('a request of the bench was denied')
  }
  best = Math.max(best, sequence.length / ((performance.now() - started) / 1000))
}
process.stdout.write(JSON.stringify({ opsPerSecond: best, loadMs, bytes }))
process.exit(0)
