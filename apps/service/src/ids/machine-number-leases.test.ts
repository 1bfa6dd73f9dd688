import type { NumberLeaseRequest } from '@sluice/config-store'
import { decodeSnowflake, Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MachineNumberLeases } from './machine-number-leases.ts'
import { IdSource, MachineNumberTable } from './machine-numbers.ts'

const START_MS = 1_800_000_000_000

const SILENT = { write: () => true, on: () => undefined, off: () => undefined }

interface Scene {
  readonly numbers: MachineNumberLeases
  readonly machineNumbers: MachineNumberTable
  readonly ids: IdSource
  readonly asked: NumberLeaseRequest[]
  nowMs: number
  /** What the next requests get; an error is thrown. */
  answers: (number | 'none' | 'silent' | Error)[]
  /** Ends the wait that is in progress and lets what follows run; says how long it was. */
  wake(): Promise<number>
  /** Ends the wait that began last; says how long it was. */
  wakeLast(): number
}

function scene(count = 1, given?: number): Scene {
  const machineNumbers = new MachineNumberTable(count)
  const asked: NumberLeaseRequest[] = []
  const waits: { delayMs: number; wake: () => void }[] = []
  let waiting = Promise.withResolvers<void>()
  const output = new LogOutput({ stream: SILENT, nowMs: () => START_MS, level: 'off' })
  const made: Scene = {
    machineNumbers,
    asked,
    nowMs: START_MS,
    answers: [],
    ids: new IdSource(machineNumbers, 0, () => made.nowMs),
    async wake() {
      await waiting.promise
      waiting = Promise.withResolvers()
      const { delayMs, wake } = waits.shift()!
      wake()
      await waiting.promise
      return delayMs
    },
    wakeLast() {
      const { delayMs, wake } = waits.pop()!
      wake()
      return delayMs
    },
    numbers: new MachineNumberLeases({
      machineNumbers,
      count,
      holder: 'me',
      first: given ?? 1022,
      isGiven: given !== undefined,
      nowMs: () => made.nowMs,
      log: new Logger(output),
      leases: {
        take(request) {
          asked.push(request)
          const answer = made.answers.shift() ?? asked.length
          if (answer instanceof Error) return Promise.reject(answer)
          if (answer === 'silent') return new Promise(() => undefined)
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
    const { numbers, machineNumbers, asked } = scene(3)
    await numbers.start()
    expect(asked.map(({ holder, count, leaseMs }) => [holder, count, leaseMs])).toEqual([
      ['me/0', 1024, 120_000],
      ['me/1', 1024, 120_000],
      ['me/2', 1024, 120_000],
    ])
    const parts = [0, 1, 2].map((thread) => {
      const id = new IdSource(new MachineNumberTable(3, machineNumbers.memory), thread, () => START_MS).next()
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

  it('prefer the number a thread had before, else the next one from the start of the process', async () => {
    const node = scene(3)
    node.answers = [1022, 5, 0]
    await node.numbers.start()
    await node.wake()
    expect(node.asked.map(({ wanted }) => wanted)).toEqual([1022, 1023, 0, 1022, 5, 0])
    expect(node.asked.every(({ onlyWanted }) => onlyWanted === false)).toBe(true)
  })

  it('are no others than the settings give, and not used for a moment longer when another node has one', async () => {
    const node = scene(1, 7)
    node.answers = [7, 'none', 7]
    await node.numbers.start()
    expect(node.ids.next()).toBeDefined()
    await node.wake()
    expect(node.ids.next()).toBeUndefined()
    expect(await node.wake()).toBe(2000)
    expect(decodeSnowflake(BigInt(node.ids.next()!))).toMatchObject({ datacenter: 0, machine: 7 })
    expect(node.asked.map(({ wanted, onlyWanted }) => [wanted, onlyWanted])).toEqual(Array(3).fill([7, true]))
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

describe('a stop in order', () => {
  it('leaves the numbers of this process taken for as long as clocks may differ, and no longer', async () => {
    const node = scene(2)
    node.answers = [4, 5]
    await node.numbers.start()
    await node.numbers.stop()
    expect(node.asked.slice(2).map(({ holder, leaseMs }) => [holder, leaseMs])).toEqual([
      ['me/0', 30_000],
      ['me/1', 30_000],
    ])
  })

  it('takes no number that it did not have, or has lost', async () => {
    const without = scene()
    without.answers = ['none']
    await without.numbers.start()
    await without.numbers.stop()
    const late = scene()
    await late.numbers.start()
    late.nowMs += 90_000
    await late.numbers.stop()
    expect([without.asked.length, late.asked.length]).toEqual([1, 1])
  })

  it('does not fail, nor wait for long, when the numbers cannot be reached', async () => {
    const failing = scene()
    failing.answers = [1, new Error('away')]
    await failing.numbers.start()
    await failing.numbers.stop()
    expect(failing.asked).toHaveLength(2)
    const silent = scene()
    silent.answers = [1, 'silent']
    await silent.numbers.start()
    const stopped = silent.numbers.stop()
    // The renewal in flight, and the end of the lease, which gets no reply.
    await expect.poll(() => silent.asked.length).toBe(2)
    expect(silent.wakeLast()).toBe(1000)
    await stopped
  })
})

describe('ids', () => {
  it('rise, and are given for good where the number is', () => {
    const machineNumbers = new MachineNumberTable(1)
    let nowMs = START_MS
    const ids = new IdSource(machineNumbers, 0, () => nowMs)
    expect(ids.next()).toBeUndefined()
    machineNumbers.give(0, 3, Number.POSITIVE_INFINITY)
    const first = BigInt(ids.next()!)
    expect(BigInt(ids.next()!)).toBe(first + 1n)
    nowMs += 40 * 365 * 86_400_000
    expect(BigInt(ids.next()!)).toBeGreaterThan(first)
  })
})
