import { decodeSnowflake } from '@sluice/runtime'
import { afterEach, expect, it, vi } from 'vitest'
import { IdSource, MachineNumberTable } from './machine-numbers.ts'

const START_MS = 1_800_000_000_000
const [OLD, NEW] = [3, 4]

/** A thread whose number was leased until `endMs`, and the machine numbers of the ids that it makes at `nowMs`. */
function scene(
  endMs: number,
  nowMs: number,
): { machineNumbers: MachineNumberTable; machineNow: () => number | undefined } {
  const machineNumbers = new MachineNumberTable(1)
  machineNumbers.give(0, OLD, endMs)
  const ids = new IdSource(machineNumbers, 0, () => nowMs)
  const machineNow = (): number | undefined => {
    const id = ids.next()
    return id === undefined ? undefined : decodeSnowflake(BigInt(id)).machine
  }
  return { machineNumbers, machineNow }
}

afterEach(() => void vi.restoreAllMocks())

it('a reader never gets a number whose lease has ended, between any two writes of a new one', () => {
  const { machineNumbers, machineNow } = scene(START_MS, START_MS + 1000)
  const read: (number | undefined)[] = []
  const { store } = Atomics
  const spy = vi.spyOn(Atomics, 'store').mockImplementation(((...args: Parameters<typeof store>) => {
    const stored = store(...args)
    read.push(machineNow())
    return stored
  }) as typeof store)
  machineNumbers.give(0, NEW, START_MS + 9000)
  spy.mockRestore()
  expect(read).toEqual([undefined, NEW])
})

it('a reader never gets a number whose lease has ended, when a new one comes between any two of its reads', () => {
  const reads: (number | undefined)[] = []
  for (let before = 0; before < 3; before++) {
    const { machineNumbers, machineNow } = scene(START_MS, START_MS + 1000)
    const { load } = Atomics
    let count = 0
    const spy = vi.spyOn(Atomics, 'load').mockImplementation(((...args: Parameters<typeof load>) => {
      if (count++ === before) machineNumbers.give(0, NEW, START_MS + 9000)
      return load(...args)
    }) as typeof load)
    reads.push(machineNow())
    spy.mockRestore()
  }
  expect(reads).not.toContain(OLD)
  expect(reads[0]).toBe(NEW)
})

it('ids go on with the number while its lease lasts, and end with it', () => {
  expect(scene(START_MS + 1000, START_MS + 999).machineNow()).toBe(OLD)
  expect(scene(START_MS + 1000, START_MS + 1000).machineNow()).toBeUndefined()
  const { machineNumbers, machineNow } = scene(START_MS + 1000, START_MS)
  machineNumbers.withdraw(0)
  expect(machineNow()).toBeUndefined()
})
