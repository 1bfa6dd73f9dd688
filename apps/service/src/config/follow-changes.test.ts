import { MessageChannel } from 'node:worker_threads'
import type { Sleep } from '@sluice/runtime'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SingleThread, ThreadHub, ThreadMember } from '../threads/message-bus.ts'
import { ThreadLink } from '../threads/thread-link.ts'
import type { FollowingParts } from './follow-changes.ts'
import { followInAllThreads, shareFollowing } from './follow-changes.ts'

/** How long the main thread waits for an answer. */
const ANSWER_MS = 2000

interface Scene {
  /** One thread each: all that it follows changes with. */
  readonly parts: readonly FollowingParts[]
  readonly hub: ThreadHub
  readonly links: readonly ThreadLink[]
  /** What was logged, by any thread. */
  readonly lines: Readonly<Record<string, unknown>>[]
  /** Says that the time is over in which the main thread waits for answers. */
  endWaits(): void
}

/** Threads that follow by `refresh`, with ports between them as between real threads. */
function scene(refreshes: readonly (() => Promise<void>)[]): Scene {
  const hub = new ThreadHub(refreshes.length)
  const lines: Record<string, unknown>[] = []
  const waits = new Set<() => void>()
  const sleep: Sleep = (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (delayMs === ANSWER_MS) waits.add(resolve)
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const links: ThreadLink[] = []
  const parts = refreshes.map((refresh, index) => {
    const { port1, port2 } = new MessageChannel()
    onTestFinished(() => port1.close())
    const threads: ThreadMember = new ThreadMember({ index, count: refreshes.length, link: () => link })
    const link = new ThreadLink({ port: port1, answer: (topic, question) => threads.serve(topic, question), sleep })
    const back = new ThreadLink({ port: port2, answer: (topic, question) => hub.serve(topic, question), sleep })
    hub.join(index, back)
    links.push(back)
    const made = { threads, follower: { refresh }, log: logInto(lines) }
    shareFollowing(made)
    return made
  })
  const endWaits = (): void => {
    for (const end of waits) end()
  }
  return { parts, hub, links, lines, endWaits }
}

function logInto(lines: Record<string, unknown>[]): Logger {
  const stream: ConstructorParameters<typeof LogOutput>[0]['stream'] = {
    write: (text, written) => {
      lines.push(JSON.parse(text))
      written()
      return true
    },
    on: () => undefined,
    off: () => undefined,
  }
  return new Logger(new LogOutput({ stream, nowMs: () => 0, level: 'debug' }))
}

describe('a change', () => {
  it('is followed once in every thread, and only then it is done', async () => {
    const follows: number[] = []
    const held = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const { parts, hub, lines } = scene([
      async () => void follows.push(0),
      async () => void follows.push(1),
      async () => {
        asked.resolve()
        await held.promise
        follows.push(2)
      },
    ])
    let isDone = false
    const done = followInAllThreads(parts[1]!).then(() => {
      isDone = true
    })
    await asked.promise
    // As long as it takes to ask all threads something else.
    await hub.gather('unknown')
    expect(isDone).toBe(false)
    held.resolve()
    await done
    expect([follows.sort(), lines]).toEqual([[0, 1, 2], []])
  })

  it('is done all the same when a thread does not answer in time, which the log tells', async () => {
    const asked = Promise.withResolvers<void>()
    const never = (): Promise<void> => {
      asked.resolve()
      return new Promise(() => undefined)
    }
    const { parts, hub, lines, endWaits } = scene([() => Promise.resolve(), never])
    const done = followInAllThreads(parts[0]!)
    await asked.promise
    await hub.gather('unknown')
    endWaits()
    await done
    expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('did not confirm'), threads: 1 }])
  })

  it('is done all the same when a thread cannot follow, which that thread tells', async () => {
    const { parts, lines } = scene([() => Promise.resolve(), () => Promise.reject(new Error('away'))])
    await followInAllThreads(parts[0]!)
    expect(lines).toMatchObject([{ level: 'warn', message: 'could not apply a configuration change at once' }])
  })

  it('waits for no thread that has ended: it begins with what there is by then', async () => {
    const { parts, links, lines } = scene([() => Promise.resolve(), () => Promise.reject(new Error('not asked'))])
    links[1]!.close()
    await followInAllThreads(parts[0]!)
    expect(lines).toEqual([])
  })

  it('is followed by a thread alone', async () => {
    let follows = 0
    const parts = { threads: new SingleThread(), follower: { refresh: async () => void follows++ }, log: logInto([]) }
    shareFollowing(parts)
    await followInAllThreads(parts)
    expect(follows).toBe(1)
  })
})
