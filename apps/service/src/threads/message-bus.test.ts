import { MessageChannel } from 'node:worker_threads'
import type { Sleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { MainThread, ThreadGroup } from './message-bus.ts'
import { SingleThread, ThreadHub, ThreadMember } from './message-bus.ts'
import { ThreadLink } from './thread-link.ts'

const never: Sleep = (_, signal) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))

/** A main thread and others, with ports between them as between real threads. */
function group(count: number): { hub: ThreadHub; members: ThreadMember[]; links: ThreadLink[] } {
  const hub = new ThreadHub(count)
  const links: ThreadLink[] = []
  const members = Array.from({ length: count }, (_, index) => {
    const { port1, port2 } = new MessageChannel()
    onTestFinished(() => port1.close())
    const member: ThreadMember = new ThreadMember({ index, count, link: () => link })
    const link = new ThreadLink({
      port: port1,
      answer: (topic, question) => member.serve(topic, question),
      sleep: never,
    })
    const back = new ThreadLink({ port: port2, answer: (topic, question) => hub.serve(topic, question), sleep: never })
    hub.join(index, back)
    links.push(back)
    return member
  })
  return { hub, members, links }
}

describe('a group of threads', () => {
  it('is asked as a whole, by any of them and by the main thread, in order', async () => {
    const { hub, members } = group(3)
    for (const member of members) member.answer('double', (n) => [member.index, Number(n) * 2])
    const all = [
      [0, 8],
      [1, 8],
      [2, 8],
    ]
    expect(await hub.gather('double', 4)).toEqual(all)
    expect(await members[2]!.gather('double', 4)).toEqual(all)
  })

  it('leaves out threads that fail, that have ended or that do not know the topic', async () => {
    const { hub, members, links } = group(4)
    members[0]!.answer('name', () => 'zero')
    members[1]!.answer('name', () => Promise.reject(new Error('no')))
    members[3]!.answer('name', () => 'three')
    links[3]!.close()
    expect(await members[0]!.gather('name')).toEqual(['zero'])
    hub.part(3, links[0]!)
    expect(hub.alive).toBe(4)
    hub.part(3, links[3]!)
    expect(hub.alive).toBe(3)
  })

  it('asks a thread from when it is there, and counts it from when it answers requests', async () => {
    const { hub, members, links } = group(2)
    for (const member of members) member.answer('name', () => member.index)
    const link = links[1]!
    hub.part(1, link)
    expect([await hub.gather('name'), hub.alive]).toEqual([[0], 1])
    hub.enter(1, link)
    expect([await hub.gather('name'), hub.alive]).toEqual([[0, 1], 1])
    hub.join(1, link)
    expect(hub.alive).toBe(2)
    // The next of its number takes its place, and it is not missed when it is gone at last.
    hub.enter(1, links[0]!)
    expect([await hub.gather('name'), hub.alive]).toEqual([[0, 0], 1])
    hub.part(1, link)
    expect(await hub.gather('name')).toEqual([0, 0])
  })

  it('has one main thread to ask', async () => {
    const { hub, members } = group(2)
    hub.answerForAll('alerts', (question) => ({ question, from: 'main' }))
    expect(await members[1]!.askMain('alerts', 'list')).toEqual({ question: 'list', from: 'main' })
    expect(await hub.askMain('alerts', 'list')).toEqual({ question: 'list', from: 'main' })
    await expect(members[0]!.askMain('other')).rejects.toThrow('nobody answers "other"')
  })

  it('lets the main thread gather for whoever asks it', async () => {
    const { hub, members } = group(2)
    for (const member of members) member.answer('count', () => member.index + 1)
    hub.answerForAll('sum', async () => (await hub.gather<number>('count')).reduce((sum, count) => sum + count, 0))
    expect(await members[0]!.askMain('sum')).toBe(3)
  })

  it('refuses a topic twice, and topics of requests in a main thread that answers none', () => {
    const { hub, members } = group(1)
    members[0]!.answer('x', () => 1)
    expect(() => members[0]!.answer('x', () => 2)).toThrow('"x" is answered already')
    expect(() => hub.answer('x')).toThrow('"x"')
    expect([hub.index, hub.count, members[0]!.index]).toEqual([-1, 1, 0])
  })
})

describe('a thread alone', () => {
  it('is a group of one, and its main thread', async () => {
    const alone = new SingleThread()
    const threads: ThreadGroup & MainThread = alone
    threads.answer('x', (n) => Number(n) + 1)
    threads.answerForAll('y', () => threads.gather('x', 1))
    expect(await threads.gather('x', 1)).toEqual([2])
    expect(await threads.askMain('y')).toEqual([2])
    expect([threads.index, threads.count]).toEqual([0, 1])
  })

  it('leaves itself out where it fails, as a group does, and says so where it is asked as the main thread', async () => {
    const threads = new SingleThread()
    threads.answer('x', () => Promise.reject(new Error('no')))
    threads.answerForAll('x', () => Promise.reject(new Error('no')))
    expect(await threads.gather('x')).toEqual([])
    expect(await threads.gather('unknown')).toEqual([])
    await expect(threads.askMain('x')).rejects.toThrow('no')
  })
})
