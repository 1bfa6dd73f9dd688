import type { Decision } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { redisStore } from '../redis-store.ts'
import type { NodeAnswer, NodeOrder } from './local-mode.test.messages.ts'
import { LOCAL_RULE } from './local-mode.test.messages.ts'

// One node: a process with a store that follows orders and reports.

const [url = '', initialNodes = '1'] = process.argv.slice(2)
const store = redisStore(url, { deadlineMs: 200, denyCache: false, initialNodes: Number(initialNodes) })
const limiter = createLimiter({ ...LOCAL_RULE, store })
/** Admitted without Redis, and not given back yet. */
const charged: Decision[] = []

async function check(key: string, times: number): Promise<NodeAnswer> {
  const decisions: Decision[] = []
  for (let call = 0; call < times; call++) decisions.push(await limiter.check(key))
  const allowed = decisions.filter((decision) => decision.allowed)
  const fellBack = decisions.filter(({ failure }) => failure !== undefined)
  charged.push(...fellBack.filter((decision) => decision.allowed))
  return { ...answer(), admitted: allowed.length, fellBack: fellBack.length }
}

async function peek(key: string): Promise<NodeAnswer> {
  const { failure } = await limiter.peek(key, { cost: 0 })
  return { ...answer(), fellBack: failure === undefined ? 0 : 1 }
}

async function refund(): Promise<NodeAnswer> {
  for (const decision of charged.splice(0)) await limiter.refund(decision)
  return answer()
}

function answer(): NodeAnswer {
  return { admitted: 0, fellBack: 0, nodes: store.stats().nodes }
}

async function obey(order: NodeOrder): Promise<NodeAnswer> {
  if (order.do === 'check') return await check(order.key, order.times)
  if (order.do === 'peek') return await peek(order.key)
  if (order.do === 'refund') return await refund()
  if (order.do === 'leave') await store.close()
  return answer()
}

process.on('message', async (order: NodeOrder) => {
  process.send?.(await obey(order))
  if (order.do === 'leave') process.disconnect()
})

// The parent process is gone.
process.on('disconnect', () => void store.close())
