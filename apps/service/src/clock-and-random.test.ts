import { expect, it, onTestFinished, vi } from 'vitest'
import { systemReadings } from './clock-and-random.ts'
import { startService } from './service.fixture.ts'

it('reads the memory of the process and of this thread', () => {
  expect(systemReadings.residentBytes()).toBeGreaterThan(systemReadings.heapBytes())
  expect(systemReadings.heapBytes()).toBeGreaterThan(0)
})

it('answers GET /metrics without the resident memory where the system does not say it', async () => {
  const missing = (): never => {
    throw Object.assign(new Error('no such file or directory, uv_resident_set_memory'), { code: 'ENOENT' })
  }
  const stubs = [
    vi.spyOn(process, 'memoryUsage').mockImplementation(missing),
    vi.spyOn(process.memoryUsage, 'rss').mockImplementation(missing),
  ]
  onTestFinished(() => {
    for (const stub of stubs) stub.mockRestore()
  })
  const service = await startService()
  onTestFinished(() => service.stop())
  const response = await fetch(`${service.origin}/metrics`)
  const page = await response.text()
  expect(response.status).toBe(200)
  expect(page).toContain('\nprocess_cpu_seconds_total ')
  expect(page).not.toContain('\nprocess_resident_memory_bytes ')
})
