import { MessageChannel } from 'node:worker_threads'
import type { Sleep } from '@sluice/runtime'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ToMain } from '../thread-messages/message-bus.ts'
import { SingleThread, ThreadHub, ThreadLink, ThreadMember } from '../thread-messages/message-bus.ts'
import type { FollowingParts, FollowMessages } from './follow-changes.ts'
import { followInAllThreads, shareFollowing } from './follow-changes.ts'

/** Time that the main thread waits for a reply. */
const REPLY_TIMEOUT_MS = 2000

interface TestMessages extends FollowMessages {
  unknown: () => void
}

interface Scene {
  /** One entry per thread. */
  readonly parts: readonly FollowingParts[]
  readonly hub: ThreadHub<TestMessages>
  readonly links: readonly ThreadLink<object, ToMain>[]
  /** Log lines of all threads. */
  readonly lines: Readonly<Record<string, unknown>>[]
  /** Lets pending calls of the main thread time out. */
  endWaits(): void
}

/** Threads that follow by `refresh`, connected by ports like real threads. */
function scene(refreshes: readonly (() => Promise<void>)[]): Scene {
  const hub = new ThreadHub<TestMessages>(refreshes.length)
  const lines: Record<string, unknown>[] = []
  const waits = new Set<() => void>()
  const sleep: Sleep = (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (delayMs === REPLY_TIMEOUT_MS) waits.add(resolve)
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const links: ThreadLink<object, ToMain>[] = []
  const parts = refreshes.map((refresh, index) => {
    const { port1, port2 } = new MessageChannel()
    onTestFinished(() => port1.close())
    const threads = new ThreadMember<TestMessages>(index, refreshes.length, new ThreadLink(port1, sleep))
    const back = new ThreadLink<object, ToMain>(port2, sleep)
    hub.attach(back)
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
  it('is applied once in every thread before the call resolves', async () => {
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
    // A round trip to all threads.
    await hub.gather('unknown')
    expect(isDone).toBe(false)
    held.resolve()
    await done
    expect([follows.sort(), lines]).toEqual([[0, 1, 2], []])
  })

  it('resolves and logs when a thread does not reply in time', async () => {
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

  it('resolves when a thread fails, which that thread logs', async () => {
    const { parts, lines } = scene([() => Promise.resolve(), () => Promise.reject(new Error('away'))])
    await followInAllThreads(parts[0]!)
    expect(lines).toMatchObject([{ level: 'warn', message: 'could not apply a configuration change at once' }])
  })

  it('does not wait for a thread that has ended', async () => {
    const { parts, links, lines } = scene([() => Promise.resolve(), () => Promise.reject(new Error('not asked'))])
    links[1]!.close()
    await followInAllThreads(parts[0]!)
    expect(lines).toEqual([])
  })

  it('is applied by a single thread', async () => {
    let follows = 0
    const parts = {
      threads: new SingleThread<FollowMessages>(),
      follower: { refresh: async () => void follows++ },
      log: logInto([]),
    }
    shareFollowing(parts)
    await followInAllThreads(parts)
    expect(follows).toBe(1)
  })
})
