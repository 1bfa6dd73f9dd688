import { systemMonotonicMs } from '@sluice/core/internal'
import { systemSleep } from '@sluice/runtime'
import { expect, it, onTestFinished } from 'vitest'
import { startService } from '../service.fixture.ts'

const PER_SECOND = 200
const SECONDS = 3
const CALLERS = 20

it('answers all checks that arrive at a constant rate, and keeps nothing of them', async () => {
  const node = await startService()
  onTestFinished(() => node.stop())
  const startedMs = systemMonotonicMs()
  const answers: Promise<number>[] = []
  for (let number = 0; number < PER_SECOND * SECONDS; number++) {
    // Each has its time, and is not put off when the one before takes long.
    const waitMs = startedMs + (number * 1000) / PER_SECOND - systemMonotonicMs()
    if (waitMs > 0) await systemSleep(waitMs)
    const answer = node.check({ userId: `user-${number % CALLERS}`, resource: '/x' }).then(async (response) => {
      await response.arrayBuffer()
      return response.status
    })
    answers.push(answer)
  }
  const statuses = await Promise.all(answers)
  expect(statuses.filter((status) => status !== 200)).toEqual([])
  const metrics = await (await fetch(`${node.origin}/metrics`)).text()
  expect(metrics).toContain(`ratelimit_store_keys ${CALLERS}\n`)
  expect(metrics).toMatch(/^ratelimit_check_duration_ms_count 600$/m)
  expect(node.log).toEqual([])
})
