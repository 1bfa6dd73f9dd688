import { createServer } from 'node:net'
import type { Random } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../fakes/seeded-random.ts'
import { freePort, LOOPBACK, onFreePorts } from './free-port.ts'
import { ServerError } from './server-error.ts'

/** Draws these numbers, then others. */
function drawing(...numbers: readonly number[]): Random {
  const others = seededRandom(1)
  const left = [...numbers]
  return { nextUint32: () => left.shift() ?? others.nextUint32() }
}

async function occupy(port: number): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, LOOPBACK, resolve)
  })
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
}

describe('freePort', () => {
  it('answers a port that can be listened on, below those of outgoing connections', async () => {
    const port = await freePort()
    expect(port).toBeGreaterThanOrEqual(10_000)
    expect(port).toBeLessThanOrEqual(32_000)
    await occupy(port)
  })

  it('leaves out a port that is taken', async () => {
    const taken = await freePort()
    await occupy(taken)
    expect(await freePort(drawing(taken - 10_000))).not.toBe(taken)
  })
})

describe('onFreePorts', () => {
  it('gives different ports even when chance repeats itself', async () => {
    const ports = await onFreePorts(3, (free) => Promise.resolve(free), drawing(7, 7, 7, 7))
    expect(new Set(ports).size).toBe(3)
  })

  it('starts again on others when a port was taken meanwhile, five times in all', async () => {
    const tried: number[] = []
    const start = onFreePorts(1, ([port]) => {
      tried.push(port!)
      return Promise.reject(new ServerError('SLUICE_TESTING_PORT_TAKEN', 'taken'))
    })
    await expect(start).rejects.toMatchObject({ code: 'SLUICE_TESTING_PORT_TAKEN' })
    expect(new Set(tried).size).toBe(5)
  })

  it('passes any other failure on at once', async () => {
    let starts = 0
    const start = onFreePorts(1, () => {
      starts++
      return Promise.reject(new Error('broken'))
    })
    await expect(start).rejects.toThrow('broken')
    expect(starts).toBe(1)
  })
})
