import type { NumberLeaseRequest } from '@sluice/config-store'
import { decodeSnowflake, Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import { IdSource, MachineCells } from './machine-cell.ts'
import { MachineNumbers } from './machine-numbers.ts'

const START_MS = 1_800_000_000_000

interface Scene {
  readonly numbers: MachineNumbers
  readonly cells: MachineCells
  readonly ids: IdSource
  readonly asked: NumberLeaseRequest[]
  nowMs: number
  /** What the next requests get; an error is thrown. */
  answers: (number | 'none' | Error)[]
  /** Ends the wait that is under way and lets what follows run; says how long it was. */
  wake(): Promise<number>
}

function scene(count = 1): Scene {
  const cells = new MachineCells(count)
  const asked: NumberLeaseRequest[] = []
  const waits: { delayMs: number; wake: () => void }[] = []
  let waiting = Promise.withResolvers<void>()
  const output = new LogOutput({ stream: process.stderr, nowMs: () => START_MS, level: 'off' })
  const made: Scene = {
    cells,
    asked,
    nowMs: START_MS,
    answers: [],
    ids: new IdSource(cells, 0, () => made.nowMs),
    async wake() {
      await waiting.promise
      waiting = Promise.withResolvers()
      const { delayMs, wake } = waits.shift()!
      wake()
      await waiting.promise
      return delayMs
    },
    numbers: new MachineNumbers({
      cells,
      count,
      holder: 'me',
      nowMs: () => made.nowMs,
      log: new Logger(output),
      leases: {
        take(request) {
          asked.push(request)
          const answer = made.answers.shift() ?? asked.length
          if (answer instanceof Error) return Promise.reject(answer)
          return Promise.resolve(answer === 'none' ? undefined : answer)
        },
      },
      sleep: (delayMs, signal) =>
        new Promise((resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason))
          waits.push({ delayMs, wake: resolve })
          waiting.resolve()
        }),
    }),
  }
  onTestFinished(() => made.numbers.stop())
  return made
}

describe('the numbers of a process', () => {
  it('are one for each thread, and each thread makes ids with its own', async () => {
    const { numbers, cells, asked } = scene(3)
    await numbers.start()
    expect(asked.map(({ holder, count, leaseMs }) => [holder, count, leaseMs])).toEqual([
      ['me/0', 1024, 120_000],
      ['me/1', 1024, 120_000],
      ['me/2', 1024, 120_000],
    ])
    const parts = [0, 1, 2].map((thread) => {
      const id = new IdSource(new MachineCells(3, cells.memory), thread, () => START_MS).next()
      const { datacenter, machine } = decodeSnowflake(BigInt(id!))
      return datacenter * 32 + machine
    })
    expect(parts).toEqual([1, 2, 3])
  })

  it('use both parts of the number', async () => {
    const node = scene()
    node.answers = [1023]
    await node.numbers.start()
    expect(decodeSnowflake(BigInt(node.ids.next()!))).toMatchObject({ datacenter: 31, machine: 31 })
  })

  it('are renewed long before their leases end', async () => {
    const node = scene()
    await node.numbers.start()
    node.nowMs += 20_000
    expect(await node.wake()).toBe(20_000)
    expect(node.asked).toHaveLength(2)
    node.nowMs += 89_999
    expect(node.ids.next()).toBeDefined()
    node.nowMs += 1
    expect(node.ids.next()).toBeUndefined()
  })

  it('are not used beyond three quarters of a lease that cannot be renewed, and used again when it can', async () => {
    const node = scene()
    node.answers = [7, new Error('away'), new Error('away'), 7]
    await node.numbers.start()
    expect(await node.wake()).toBe(20_000)
    node.nowMs = START_MS + 89_999
    expect(node.ids.next()).toBeDefined()
    node.nowMs = START_MS + 90_000
    expect(node.ids.next()).toBeUndefined()
    expect(await node.wake()).toBe(2000)
    expect(node.ids.next()).toBeUndefined()
    expect(await node.wake()).toBe(2000)
    expect(node.ids.next()).toBeDefined()
  })

  it('may come late, and be another after a long time without', async () => {
    const node = scene()
    node.answers = [new Error('away'), 5, 6]
    await node.numbers.start()
    expect(node.ids.next()).toBeUndefined()
    await node.wake()
    const first = decodeSnowflake(BigInt(node.ids.next()!)).machine
    await node.wake()
    expect([first, decodeSnowflake(BigInt(node.ids.next()!)).machine]).toEqual([5, 6])
  })

  it('are none when all are taken', async () => {
    const node = scene()
    node.answers = ['none']
    await node.numbers.start()
    expect(node.ids.next()).toBeUndefined()
    expect(await node.wake()).toBe(2000)
    expect(node.ids.next()).toBeDefined()
  })
})

describe('ids', () => {
  it('rise, and are given for good where the number is', () => {
    const cells = new MachineCells(1)
    let nowMs = START_MS
    const ids = new IdSource(cells, 0, () => nowMs)
    expect(ids.next()).toBeUndefined()
    cells.give(0, 3, Number.POSITIVE_INFINITY)
    const first = BigInt(ids.next()!)
    expect(BigInt(ids.next()!)).toBe(first + 1n)
    nowMs += 40 * 365 * 86_400_000
    expect(BigInt(ids.next()!)).toBeGreaterThan(first)
  })
})
