import { EventEmitter } from 'node:events'
import { Logger, LogOutput } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import { ThreadHub } from '../threads/message-bus.ts'
import type { SupervisedThread } from './supervisor.ts'
import { THREAD_DRAIN, THREAD_ENTER, THREAD_START, THREAD_STOP, ThreadSupervisor } from './supervisor.ts'

interface Ask {
  readonly id: number
  readonly topic: string
  readonly question: unknown
}

/** A thread that does what the test says. */
class FakeThread extends EventEmitter implements SupervisedThread {
  readonly index: number
  readonly told: [topic: string, question: unknown][] = []
  readonly #behave: (ask: Ask, thread: FakeThread) => unknown

  constructor(index: number, behave: (ask: Ask, thread: FakeThread) => unknown) {
    super()
    this.index = index
    this.#behave = behave
  }

  postMessage(message: unknown): void {
    const ask = message as Ask
    this.told.push([ask.topic, ask.question])
    queueMicrotask(() => {
      try {
        const answer = this.#behave(ask, this)
        if (answer !== SILENCE) this.emit('message', { kind: 'answer', id: ask.id, answer })
      } catch (error) {
        const { name, message: text, code } = error as Error & { code?: string }
        this.emit('message', { kind: 'failure', id: ask.id, error: { name, message: text, code } })
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

const SILENCE = Symbol('silence')

interface Scene {
  readonly supervisor: ThreadSupervisor
  readonly hub: ThreadHub
  readonly threads: FakeThread[]
  readonly waits: { readonly delayMs: number; readonly wake: () => void }[]
  nowMs: number
}

/** `behave`: what a thread answers; the port it was told to listen on, or 4711, when it says nothing else. */
function scene(count: number, behave: (ask: Ask, thread: FakeThread) => unknown = () => undefined): Scene {
  const hub = new ThreadHub(count)
  const threads: FakeThread[] = []
  const waits: Scene['waits'] = []
  const made: Scene = {
    hub,
    threads,
    waits,
    nowMs: 0,
    supervisor: new ThreadSupervisor({
      hub,
      port: 0,
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
        const thread = new FakeThread(index, (ask, self) => {
          const answer = behave(ask, self)
          if (answer !== undefined) return answer
          return ask.topic === THREAD_START ? Number(ask.question) || 4711 : null
        })
        threads.push(thread)
        return thread
      },
    }),
  }
  return made
}

/** Lets everything happen that waits for nothing. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined
}

/** Ends the wait that is for starting a thread again, and says how long it was. */
async function endBackoff({ waits }: Scene): Promise<number> {
  const wait = waits.at(-1)!
  wait.wake()
  await settle()
  return wait.delayMs
}

describe('a supervisor', () => {
  it('lets the others listen where the first does', async () => {
    const { supervisor, threads, hub } = scene(3)
    expect(supervisor.port).toBeUndefined()
    await supervisor.start()
    expect(threads.map(({ index, told }) => [index, told[0]])).toEqual([
      [0, [THREAD_START, 0]],
      [1, [THREAD_START, 4711]],
      [2, [THREAD_START, 4711]],
    ])
    expect([supervisor.port, hub.alive]).toEqual([4711, 3])
    await supervisor.stop()
    expect(hub.alive).toBe(0)
  })

  it('has a thread asked along that says it is there, before it has started', async () => {
    const asked: string[] = []
    const { supervisor, hub } = scene(1, ({ topic, id }, thread) => {
      if (topic !== THREAD_START) return topic === 'config' ? asked.push(topic) : undefined
      thread.emit('message', { kind: 'ask', id: 1, topic: THREAD_ENTER, question: undefined })
      void hub.gather('config').then(() => thread.emit('message', { kind: 'answer', id, answer: 4711 }))
      return SILENCE
    })
    await supervisor.start()
    expect([asked, hub.alive]).toEqual([['config'], 1])
    await supervisor.stop()
  })

  it('starts a thread again that ended, after a while that grows, on the same port', async () => {
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
    expect(threads.at(-1)!.told).toEqual([[THREAD_START, 4711]])
    // It ran for long: that was not the same failure.
    running.nowMs += 60_000
    threads.at(-1)!.end(7)
    await settle()
    expect(await endBackoff(running)).toBe(100)
    await supervisor.stop()
  })

  it('goes on trying when a thread does not start again', async () => {
    let isBroken = false
    const running = scene(2, ({ topic }) => {
      if (isBroken && topic === THREAD_START) throw new Error('no memory')
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

  it('stops all in order: told to drain, told to stop, then ended', async () => {
    const { supervisor, threads } = scene(2)
    await supervisor.start()
    const ended: number[] = []
    for (const thread of threads) thread.on('exit', () => ended.push(thread.index))
    await supervisor.drain(500)
    expect(ended).toEqual([])
    await supervisor.stop()
    for (const { told } of threads) {
      expect(told.slice(1)).toEqual([
        [THREAD_DRAIN, 500],
        [THREAD_STOP, undefined],
      ])
    }
    expect(ended).toEqual([0, 1])
  })

  it('ends a thread that does not stop, and starts none again while it stops', async () => {
    const running = scene(2, ({ topic }, { index }) => (topic === THREAD_STOP && index === 0 ? SILENCE : undefined))
    const { supervisor, threads, waits } = running
    await supervisor.start()
    const stopped = supervisor.stop()
    await settle()
    expect(threads[0]!.told.at(-1)?.[0]).toBe(THREAD_STOP)
    for (const { delayMs, wake } of waits) if (delayMs === 30_000) wake()
    await stopped
    expect(threads).toHaveLength(2)
  })

  it('does not wait for a thread to be started again when it stops', async () => {
    const { supervisor, threads } = scene(2)
    await supervisor.start()
    threads[0]!.end(1)
    await settle()
    await supervisor.stop()
    expect(threads).toHaveLength(2)
  })
})

describe('a thread that does not start', () => {
  it('is told with its reason, and no other is left', async () => {
    const { supervisor, threads, hub } = scene(3, ({ topic }, { index }) => {
      if (topic === THREAD_START && index === 1) throw new Error('no memory')
      return undefined
    })
    await expect(supervisor.start()).rejects.toMatchObject({
      code: 'SLUICE_SERVICE_THREAD_FAILED',
      message: expect.stringContaining('thread 1 (no memory)'),
    })
    expect(hub.alive).toBe(0)
    expect(threads[0]!.told.at(-1)?.[0]).toBe(THREAD_STOP)
  })

  it('because of a setting is told as that is', async () => {
    const { supervisor } = scene(2, () => {
      throw Object.assign(new Error('taken'), { code: 'SLUICE_SERVICE_PORT_IN_USE' })
    })
    await expect(supervisor.start()).rejects.toMatchObject({ code: 'SLUICE_SERVICE_PORT_IN_USE', message: 'taken' })
  })

  it('because it ended is told with what it ended with', async () => {
    const { supervisor } = scene(2, (_, thread) => {
      thread.emit('error', new Error('it could not be loaded'))
      thread.end(1)
      return SILENCE
    })
    await expect(supervisor.start()).rejects.toThrow('thread 0 (it could not be loaded)')
  })
})
