import { MessageChannel } from 'node:worker_threads'
import type { Sleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ToMain } from './message-bus.ts'
import { SingleThread, ThreadHub, ThreadLink, ThreadMember } from './message-bus.ts'

interface TestMessages {
  double: (n: number) => readonly number[]
  name: () => number
  join: (one: string, other: string) => string
  sum: () => number
  unknown: () => void
}

type BackLink = ThreadLink<object, ToMain>

/** Calls that never time out. */
const never: Sleep = (_, signal) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))

/** A main thread and others, connected by ports like real threads. */
function group(
  count: number,
  sleep = never,
): { hub: ThreadHub<TestMessages>; members: ThreadMember<TestMessages>[]; links: BackLink[] } {
  const hub = new ThreadHub<TestMessages>(count)
  const links: BackLink[] = []
  const members = Array.from({ length: count }, (_, index) => {
    const { port1, port2 } = new MessageChannel()
    onTestFinished(() => port1.close())
    const back: BackLink = new ThreadLink(port2, sleep)
    hub.attach(back)
    hub.join(index, back)
    links.push(back)
    return new ThreadMember<TestMessages>(index, count, new ThreadLink(port1, never))
  })
  return { hub, members, links }
}

describe('a group of threads', () => {
  it('replies as a whole to any thread and to the main thread, in order', async () => {
    const { hub, members } = group(3)
    for (const member of members) member.handle('double', (n) => [member.index, n * 2])
    const all = {
      replies: [
        [0, 8],
        [1, 8],
        [2, 8],
      ],
      timedOut: 0,
    }
    expect(await hub.gather('double', 4)).toEqual(all)
    expect(await members[2]!.gather('double', 4)).toEqual(all)
  })

  it('leaves out threads that fail, that have ended or that have no handler', async () => {
    const { hub, members, links } = group(4)
    members[0]!.handle('name', () => 0)
    members[1]!.handle('name', () => Promise.reject(new Error('no')))
    members[3]!.handle('name', () => 3)
    links[3]!.close()
    expect(await members[0]!.gather('name')).toEqual({ replies: [0], timedOut: 0 })
    hub.part(3, links[0]!)
    expect(hub.alive).toBe(4)
    hub.part(3, links[3]!)
    expect(hub.alive).toBe(3)
  })

  it('counts threads that do not reply in time', async () => {
    const { members } = group(2, () => Promise.resolve())
    members[0]!.handle('name', () => new Promise(() => undefined))
    expect(await members[0]!.gather('name')).toEqual({ replies: [], timedOut: 2 })
  })

  it('calls a thread as soon as it enters, and counts it once it serves requests', async () => {
    const { hub, members, links } = group(2)
    for (const member of members) member.handle('name', () => member.index)
    const names = async (): Promise<readonly number[]> => (await hub.gather('name')).replies
    const link = links[1]!
    hub.part(1, link)
    expect([await names(), hub.alive]).toEqual([[0], 1])
    hub.enter(1, link)
    expect([await names(), hub.alive]).toEqual([[0, 1], 1])
    hub.join(1, link)
    expect(hub.alive).toBe(2)
    // Another thread replaces it. When the replaced one ends, that changes nothing.
    hub.enter(1, links[0]!)
    expect([await names(), hub.alive]).toEqual([[0, 0], 1])
    hub.part(1, link)
    expect(await names()).toEqual([0, 0])
  })

  it('calls the main thread with the whole payload', async () => {
    const { hub, members } = group(2)
    hub.handleInMain('join', (one, other) => `${one} and ${other}`)
    expect(await members[1]!.callMain('join', 'a', 'b')).toBe('a and b')
    expect(await hub.callMain('join', 'a', 'b')).toBe('a and b')
    await expect(members[0]!.callMain('unknown')).rejects.toThrow('message "unknown" has no handler')
  })

  it('lets a handler of the main thread gather', async () => {
    const { hub, members } = group(2)
    for (const member of members) member.handle('name', () => member.index + 1)
    hub.handleInMain('sum', async () => (await hub.gather('name')).replies.reduce((sum, count) => sum + count, 0))
    expect(await members[0]!.callMain('sum')).toBe(3)
  })

  it('accepts one handler per message', () => {
    const { members } = group(1)
    members[0]!.handle('name', () => 1)
    expect(() => members[0]!.handle('name', () => 2)).toThrow('message "name" already has a handler')
  })
})

describe('a single thread', () => {
  it('is a group of one, and its main thread', async () => {
    const threads = new SingleThread<TestMessages>()
    threads.handle('double', (n) => [0, n * 2])
    threads.handleInMain('sum', async () => (await threads.gather('double', 2)).replies[0]![1]!)
    expect(await threads.gather('double', 1)).toEqual({ replies: [[0, 2]], timedOut: 0 })
    expect(await threads.callMain('sum')).toBe(4)
    expect([threads.index, threads.count]).toEqual([0, 1])
  })

  it('leaves itself out of a gather that fails, and rejects a failed call of the main thread', async () => {
    const threads = new SingleThread<TestMessages>()
    threads.handle('name', () => Promise.reject(new Error('no')))
    threads.handleInMain('name', () => Promise.reject(new Error('no')))
    expect(await threads.gather('name')).toEqual({ replies: [], timedOut: 0 })
    expect(await threads.gather('unknown')).toEqual({ replies: [], timedOut: 0 })
    await expect(threads.callMain('name')).rejects.toThrow('no')
  })
})
