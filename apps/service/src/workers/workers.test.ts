import { EventEmitter } from 'node:events'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import type { ListenerPorts } from '../listeners/listener.ts'
import { ThreadHub } from '../thread-messages/message-bus.ts'
import type { SupervisedThread } from './workers.ts'
import { ThreadSupervisor } from './workers.ts'

/** A message of the supervisor, as a port carries it. */
interface Call {
  readonly id: number
  readonly name: string
  readonly payload: readonly unknown[]
}

type Behaviour = (call: Call, thread: FakeThread) => unknown

/** A thread that does what the test says. */
class FakeThread extends EventEmitter implements SupervisedThread {
  readonly index: number
  readonly received: [name: string, ...payload: unknown[]][] = []
  readonly #behave: Behaviour

  constructor(index: number, behave: Behaviour) {
    super()
    this.index = index
    this.#behave = behave
  }

  postMessage(message: unknown): void {
    const call = message as Call
    this.received.push([call.name, ...(call.payload ?? [])])
    queueMicrotask(() => {
      try {
        const reply = this.#behave(call, this)
        if (reply !== NO_REPLY) this.emit('message', { kind: 'reply', id: call.id, reply })
      } catch (error) {
        const { name, message: text, code } = error as Error & { code?: string }
        this.emit('message', { kind: 'failure', id: call.id, error: { name, message: text, code } })
      }
    })
  }

  terminate(): Promise<number> {
    this.end(1)
    return Promise.resolve(1)
  }

  end(code: number): void {
    queueMicrotask(() => this.emit('exit', code))
  }
}

const NO_REPLY = Symbol('no reply')

interface TestMessages {
  config: () => unknown
}

interface Scene {
  readonly supervisor: ThreadSupervisor
  readonly hub: ThreadHub<TestMessages>
  readonly threads: FakeThread[]
  readonly waits: { readonly delayMs: number; readonly wake: () => void }[]
  nowMs: number
}

/** `behave`: the reply of a thread. Default: its port, which is 4711 unless the supervisor names one. */
function scene(count: number, behave: Behaviour = () => undefined): Scene {
  const hub = new ThreadHub<TestMessages>(count)
  const threads: FakeThread[] = []
  const waits: Scene['waits'] = []
  const made: Scene = {
    hub,
    threads,
    waits,
    nowMs: 0,
    supervisor: new ThreadSupervisor({
      hub,
      ports: { http: 0 },
      random: () => 0.5,
      nowMs: () => made.nowMs,
      log: new Logger(new LogOutput({ stream: process.stderr, nowMs: () => 0, level: 'off' })),
      sleep: (delayMs, signal) =>
        new Promise((resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason))
          if (signal?.aborted) reject(signal.reason)
          waits.push({ delayMs, wake: resolve })
        }),
      spawn: (index) => {
        const thread = new FakeThread(index, (call, self) => {
          const reply = behave(call, self)
          if (reply !== undefined) return reply
          return call.name === 'thread.start' ? { http: (call.payload[0] as ListenerPorts).http || 4711 } : null
        })
        threads.push(thread)
        return thread
      },
    }),
  }
  return made
}

/** Runs pending microtasks. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined
}

/** Ends the wait before a restart and returns its length. */
async function endBackoff({ waits }: Scene): Promise<number> {
  const wait = waits.at(-1)!
  wait.wake()
  await settle()
  return wait.delayMs
}

describe('a supervisor', () => {
  it('lets all threads listen on the port of the first', async () => {
    const { supervisor, threads, hub } = scene(3)
    expect(supervisor.ports).toEqual({})
    await supervisor.start()
    expect(threads.map(({ index, received }) => [index, received[0]])).toEqual([
      [0, ['thread.start', { http: 0 }]],
      [1, ['thread.start', { http: 4711 }]],
      [2, ['thread.start', { http: 4711 }]],
    ])
    expect([supervisor.ports, hub.alive]).toEqual([{ http: 4711 }, 3])
    await supervisor.stop()
    expect(hub.alive).toBe(0)
  })

  it('sends messages of all threads to a thread that has entered, before it has started', async () => {
    const received: string[] = []
    const { supervisor, hub } = scene(1, ({ name, id }, thread) => {
      if (name !== 'thread.start') return name === 'config' ? received.push(name) : undefined
      thread.emit('message', { kind: 'call', id: 1, name: 'thread.enter', payload: [] })
      void hub.gather('config').then(() => thread.emit('message', { kind: 'reply', id, reply: 4711 }))
      return NO_REPLY
    })
    await supervisor.start()
    expect([received, hub.alive]).toEqual([['config'], 1])
    await supervisor.stop()
  })

  it('restarts a thread that ended, with growing delays, on the same port', async () => {
    const running = scene(2)
    const { supervisor, threads, hub } = running
    await supervisor.start()
    const delays: number[] = []
    for (let death = 0; death < 4; death++) {
      threads.at(-1)!.end(7)
      await settle()
      expect(hub.alive).toBe(1)
      delays.push(await endBackoff(running))
      expect(hub.alive).toBe(2)
    }
    expect(delays).toEqual([100, 200, 400, 800])
    expect(threads.map(({ index }) => index)).toEqual([0, 1, 1, 1, 1, 1])
    expect(threads.at(-1)!.received).toEqual([['thread.start', { http: 4711 }]])
    // It ran long enough for the backoff to start over.
    running.nowMs += 60_000
    threads.at(-1)!.end(7)
    await settle()
    expect(await endBackoff(running)).toBe(100)
    await supervisor.stop()
  })

  it('keeps trying if a thread does not restart', async () => {
    let isBroken = false
    const running = scene(2, ({ name }) => {
      if (isBroken && name === 'thread.start') throw new Error('no memory')
      return undefined
    })
    const { supervisor, threads, hub } = running
    await supervisor.start()
    isBroken = true
    threads[1]!.end(1)
    await settle()
    expect(await endBackoff(running)).toBe(100)
    expect(await endBackoff(running)).toBe(200)
    isBroken = false
    expect(await endBackoff(running)).toBe(400)
    expect(hub.alive).toBe(2)
    await supervisor.stop()
  })

  it('stops threads in order: drain, stop, terminate', async () => {
    const { supervisor, threads } = scene(2)
    await supervisor.start()
    const ended: number[] = []
    for (const thread of threads) thread.on('exit', () => ended.push(thread.index))
    await supervisor.drain(500)
    expect(ended).toEqual([])
    await supervisor.stop()
    for (const { received } of threads) {
      expect(received.slice(1)).toEqual([['thread.drain', 500], ['thread.stop']])
    }
    expect(ended).toEqual([0, 1])
  })

  it('terminates a thread that does not stop, and restarts none while it stops', async () => {
    const running = scene(2, ({ name }, { index }) => (name === 'thread.stop' && index === 0 ? NO_REPLY : undefined))
    const { supervisor, threads, waits } = running
    await supervisor.start()
    const stopped = supervisor.stop()
    await settle()
    expect(threads[0]!.received.at(-1)?.[0]).toBe('thread.stop')
    for (const { delayMs, wake } of waits) if (delayMs === 30_000) wake()
    await stopped
    expect(threads).toHaveLength(2)
  })

  it('does not wait for a restart when it stops', async () => {
    const { supervisor, threads } = scene(2)
    await supervisor.start()
    threads[0]!.end(1)
    await settle()
    await supervisor.stop()
    expect(threads).toHaveLength(2)
  })
})

describe('a thread that does not start', () => {
  it('rejects the start with its reason, and stops the others', async () => {
    const { supervisor, threads, hub } = scene(3, ({ name }, { index }) => {
      if (name === 'thread.start' && index === 1) throw new Error('no memory')
      return undefined
    })
    await expect(supervisor.start()).rejects.toMatchObject({
      code: 'SLUICE_SERVICE_THREAD_FAILED',
      message: expect.stringContaining('thread 1 (no memory)'),
    })
    expect(hub.alive).toBe(0)
    expect(threads[0]!.received.at(-1)?.[0]).toBe('thread.stop')
  })

  it('because of a setting keeps the error of the setting', async () => {
    const { supervisor } = scene(2, () => {
      throw Object.assign(new Error('taken'), { code: 'SLUICE_SERVICE_PORT_IN_USE' })
    })
    await expect(supervisor.start()).rejects.toMatchObject({ code: 'SLUICE_SERVICE_PORT_IN_USE', message: 'taken' })
  })

  it('because it ended reports the error it ended with', async () => {
    const { supervisor } = scene(2, (_, thread) => {
      thread.emit('error', new Error('it could not be loaded'))
      thread.end(1)
      return NO_REPLY
    })
    await expect(supervisor.start()).rejects.toThrow('thread 0 (it could not be loaded)')
  })
})
