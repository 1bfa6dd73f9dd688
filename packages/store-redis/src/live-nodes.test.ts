import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { LiveNodesOptions } from './live-nodes.ts'
import { LiveNodes } from './live-nodes.ts'

interface Beats {
  readonly nodes: LiveNodes
  readonly timers: FakeTimers
  /** What Redis answers: a count, or nothing while it is unreachable. */
  reply: number | undefined
  /** When heartbeats were sent, in milliseconds. */
  readonly sentMs: number[]
  readonly changes: number[]
}

function beats(parts: Partial<LiveNodesOptions> = {}): Beats {
  const clock = new FakeClock(0)
  const timers = new FakeTimers(clock)
  const monotonicMs = (): number => clock.nowMicros() / 1000
  const sentMs: number[] = []
  const changes: number[] = []
  const run = (): Promise<unknown> => {
    sentMs.push(monotonicMs())
    return scene.reply === undefined ? Promise.reject(new Error('unreachable')) : Promise.resolve(scene.reply)
  }
  const nodes = new LiveNodes(
    { run },
    {
      prefix: 'test',
      random: seededRandom(1),
      monotonicMs,
      timers,
      initialNodes: 1,
      onNodesChange: (count) => void changes.push(count),
      ...parts,
    },
  )
  const scene: Beats = { nodes, timers, reply: 1, sentMs, changes }
  return scene
}

describe('heartbeats', () => {
  it('go out once per second without any check, until they are stopped', async () => {
    const { nodes, timers, sentMs } = beats()
    nodes.start()
    await timers.advance(3000)
    expect(sentMs).toEqual([0, 1000, 2000, 3000])
    nodes.stop()
    expect(timers.pending).toBe(0)
    nodes.heartbeatWithCheck()
    await timers.advance(5000)
    expect(sentMs).toHaveLength(4)
  })

  it('do not also go out with checks while they are answered', async () => {
    const { nodes, timers, sentMs } = beats()
    nodes.start()
    for (let ms = 0; ms < 2000; ms += 10) {
      await timers.advance(10)
      nodes.heartbeatWithCheck()
    }
    nodes.stop()
    expect(sentMs).toEqual([0, 1000, 2000])
  })

  it('go out with a check as soon as Redis can be reached', async () => {
    const scene = beats()
    scene.reply = undefined
    scene.nodes.start()
    await scene.timers.advance(0)
    scene.nodes.heartbeatWithCheck()
    scene.reply = 3
    await scene.timers.advance(100)
    scene.nodes.heartbeatWithCheck()
    await scene.timers.advance(0)
    scene.nodes.stop()
    expect(scene.sentMs).toEqual([0, 100])
    expect(scene.nodes.count).toBe(3)
  })

  it('are not sent while one is in flight', async () => {
    const clock = new FakeClock(0)
    const timers = new FakeTimers(clock)
    let sent = 0
    const run = (): Promise<unknown> => {
      sent++
      return new Promise(() => undefined)
    }
    const monotonicMs = (): number => clock.nowMicros() / 1000
    const parts = { prefix: 'test', random: seededRandom(1), monotonicMs, timers, initialNodes: 1 }
    const nodes = new LiveNodes({ run }, { ...parts, onNodesChange: undefined })
    nodes.start()
    await timers.advance(5000)
    nodes.heartbeatWithCheck()
    nodes.stop()
    expect(sent).toBe(1)
  })
})

describe('the node count', () => {
  it('is the initial one until a heartbeat is answered', async () => {
    const scene = beats({ initialNodes: 4 })
    scene.reply = undefined
    scene.nodes.start()
    await scene.timers.advance(10_000)
    scene.nodes.stop()
    expect(scene.nodes.count).toBe(4)
    expect(scene.changes).toEqual([])
  })

  it('rises at once', async () => {
    const scene = beats()
    scene.reply = 5
    scene.nodes.start()
    await scene.timers.advance(0)
    scene.nodes.stop()
    expect(scene.nodes.count).toBe(5)
    expect(scene.changes).toEqual([5])
  })

  it('falls to the most that 3.5 seconds of heartbeats have reported', async () => {
    const scene = beats({ initialNodes: 5 })
    scene.reply = 1
    scene.nodes.start()
    await scene.timers.advance(1000)
    scene.reply = 3
    await scene.timers.advance(1000)
    scene.reply = 2
    await scene.timers.advance(1999)
    expect(scene.nodes.count).toBe(5)
    await scene.timers.advance(1)
    expect(scene.nodes.count).toBe(3)
    await scene.timers.advance(10_000)
    scene.nodes.stop()
    expect(scene.changes).toEqual([3, 2])
  })

  it('does not fall when a Redis that has lost its data is found for a moment', async () => {
    const scene = beats({ initialNodes: 3 })
    scene.nodes.start()
    for (let outage = 0; outage < 10; outage++) {
      scene.reply = 1
      await scene.timers.advance(3000)
      scene.reply = undefined
      await scene.timers.advance(1000)
    }
    scene.nodes.stop()
    expect(scene.nodes.count).toBe(3)
  })

  it('stays while Redis is unreachable, and when this node leaves', async () => {
    const scene = beats()
    scene.reply = 3
    scene.nodes.start()
    await scene.timers.advance(0)
    scene.reply = undefined
    await scene.timers.advance(60_000)
    expect(scene.nodes.count).toBe(3)
    scene.nodes.stop()
    await scene.nodes.leave()
    scene.reply = 2
    await scene.nodes.leave()
    expect(scene.nodes.count).toBe(3)
  })

  it('goes on when its callback throws', async () => {
    const scene = beats({
      onNodesChange: () => {
        throw new Error('of the caller')
      },
    })
    scene.reply = 2
    scene.nodes.start()
    await scene.timers.advance(1000)
    scene.nodes.stop()
    expect(scene.nodes.count).toBe(2)
    expect(scene.sentMs).toHaveLength(2)
  })

  it.each([0, -1, 1.5, Number.NaN, 1_000_001, '3'])('cannot be %j at the start', (initialNodes) => {
    expect(() => beats({ initialNodes: initialNodes as number })).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: initialNodes }),
    )
  })
})
