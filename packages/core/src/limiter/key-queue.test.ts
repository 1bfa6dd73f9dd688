import { describe, expect, it } from 'vitest'
import { KeyQueue } from './key-queue.ts'

/** Whose turns have come, in order. */
function watch(line: KeyQueue, key: string, name: string, turns: string[]) {
  const ticket = line.join(key)
  ticket.turn.then(
    () => turns.push(name),
    () => turns.push(`${name} turned away`),
  )
  return ticket
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await undefined
}

describe('a waiting line', () => {
  it('serves those of one key one after the other, in the order they came', async () => {
    const line = new KeyQueue()
    const turns: string[] = []
    const tickets = ['a', 'b', 'c'].map((name) => watch(line, 'key', name, turns))
    expect(line.size).toBe(3)
    for (const [served, ticket] of tickets.entries()) {
      await settle()
      expect(turns).toEqual(['a', 'b', 'c'].slice(0, served + 1))
      ticket.leave()
    }
    expect(line.size).toBe(0)
  })

  it('does not make one key wait for another', async () => {
    const line = new KeyQueue()
    const turns: string[] = []
    watch(line, 'one', 'a', turns)
    watch(line, 'other', 'b', turns)
    await settle()
    expect(turns).toEqual(['a', 'b'])
  })

  it('closes the gap when a caller in the middle leaves, and serves no caller twice', async () => {
    const line = new KeyQueue()
    const turns: string[] = []
    const [a, b] = ['a', 'b', 'c'].map((name) => watch(line, 'key', name, turns))
    b!.leave()
    b!.leave()
    await settle()
    expect([turns, line.size]).toEqual([['a'], 2])
    a!.leave()
    a!.leave()
    await settle()
    expect([turns, line.size]).toEqual([['a', 'c'], 1])
  })

  it('turns everybody away when it closes, and everybody who comes after', async () => {
    const line = new KeyQueue()
    const turns: string[] = []
    const tickets = ['a', 'b'].map((name) => watch(line, 'key', name, turns))
    const { closing } = line
    let closed = 0
    closing.addEventListener('abort', () => closed++)
    expect(closing.aborted).toBe(false)
    await settle()
    line.close()
    await settle()
    expect(turns).toEqual(['a', 'b turned away'])
    expect([closed, line.size, line.closing.aborted]).toEqual([1, 0, true])
    expect(closing.reason).toMatchObject({ code: 'SLUICE_CLOSED' })
    for (const ticket of tickets) ticket.leave()
    expect(line.size).toBe(0)
    expect(() => line.join('key')).toThrow(expect.objectContaining({ code: 'SLUICE_CLOSED' }))
  })

  it('forgets who no longer listens to its closing', () => {
    const line = new KeyQueue()
    let closed = 0
    const listener = (): void => void closed++
    line.closing.addEventListener('abort', listener)
    line.closing.removeEventListener('abort', listener)
    line.close()
    expect(closed).toBe(0)
  })
})
