import type { PendingBatch } from '@sluice/core/internal'
import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import { describe, expect, it } from 'vitest'
import { runAfterIo } from '../system/event-loop.ts'
import type { DecideCall } from './call-builder.ts'
import { BatchGroup } from './call-builder.ts'
import { CallScheduler } from './call-scheduler.ts'
import { DecideReply } from './decide-call.ts'

const LIMIT = compileRule('rule', { limit: 1000, window: '1m' })[0]!

type TestBatch = PendingBatch & { isAbandoned: boolean }

function pendingOn(...keys: readonly string[]): TestBatch {
  return {
    batch: createBatch(keys.map((key) => createItem(LIMIT, key, 1))),
    isSent: false,
    isAbandoned: false,
    next: undefined,
    complete: () => undefined,
    fail: () => undefined,
  }
}

/** A group of `size` batches for one key. */
function groupOn(key: string, size: number): BatchGroup {
  const group = new BatchGroup(pendingOn(key))
  for (let count = 1; count < size; count++) group.join(pendingOn(key))
  return group
}

/** Every key of a call, once per batch. */
function keysOf(call: DecideCall): string[] {
  const groups = [...call.bulkChecks.flatMap((check) => check.groups), ...call.groups]
  return groups.flatMap((group) => Array.from({ length: group.size }, () => group.first.items[0]!.key))
}

interface SentCall {
  readonly call: DecideCall
  readonly resolve: (reply: DecideReply) => void
  readonly reject: (error: unknown) => void
}

/** A scheduler whose server, clock and turns of the event loop are moved by hand. */
class Scene {
  nowMs = 0
  /** Timers that run, by when they are due. */
  readonly timers: { readonly dueMs: number; readonly run: () => void }[] = []
  /** What those who are answered do at once. */
  whenAnswered: () => void = () => undefined
  /**
   * Everything that happened, in order: `call`, `written` by a client that writes later, `answered` or `failed`, and
   * the keys.
   */
  readonly events: string[] = []
  readonly scheduler: CallScheduler
  readonly #writesLater: boolean
  readonly #sent: SentCall[] = []
  #turnEnds: (() => void)[] = []
  #groups = 0

  constructor({ isCluster = false, writesLater = false }: { isCluster?: boolean; writesLater?: boolean } = {}) {
    this.#writesLater = writesLater
    this.scheduler = new CallScheduler({
      isCluster,
      writesLater,
      monotonicMs: () => this.nowMs,
      runAfterIo: (run) => void this.#turnEnds.push(run),
      timers: { schedule: (ms, run) => this.#schedule(ms, run) },
      call: (call) => this.#call(call),
      answered: (call) => {
        this.#note('answered', call)
        this.whenAnswered()
      },
      failed: (call, error) => this.#note(`failed by ${String(error)}`, call),
    })
  }

  /** The keys of each call so far. */
  get calls(): string[][] {
    return this.#sent.map(({ call }) => keysOf(call))
  }

  /** How many batches each call had so far. */
  get sizes(): number[] {
    return this.calls.map((keys) => keys.length)
  }

  /** Asks about each key. */
  ask(...keys: string[]): TestBatch[] {
    const batches = keys.map((key) => pendingOn(key))
    for (const batch of batches) this.scheduler.add(batch)
    return batches
  }

  /** Adds `times` batches for one key. */
  askTimes(times: number, key: string): TestBatch[] {
    return this.ask(...Array.from({ length: times }, () => key))
  }

  /** Adds `times` batches for three new keys each. */
  askOfThreeKeys(times: number): void {
    for (let count = 0; count < times; count++) {
      const group = this.#groups++
      this.scheduler.add(pendingOn(`key ${group} 1`, `key ${group} 2`, `key ${group} 3`))
    }
  }

  /** Asks in a turn of its own. */
  askInTurn(...keys: string[]): TestBatch[] {
    const batches = this.ask(...keys)
    this.endTurn()
    return batches
  }

  endTurn(): void {
    const ends = this.#turnEnds
    this.#turnEnds = []
    for (const end of ends) end()
  }

  /** The server answers calls, by their numbers, all at once. */
  async answer(...calls: number[]): Promise<void> {
    for (const call of calls) this.#sent[call]!.resolve(new DecideReply(Buffer.alloc(8)))
    await promisesSettled()
  }

  async fail(call: number, error: unknown): Promise<void> {
    this.#sent[call]!.reject(error)
    await promisesSettled()
  }

  /** The server answers calls, and the turn ends. */
  async answerInTurn(...calls: number[]): Promise<void> {
    await this.answer(...calls)
    this.endTurn()
  }

  /** Adds one batch and waits for its reply, `times` times, with nothing else in flight. */
  async askAlone(times: number): Promise<void> {
    for (let count = 0; count < times; count++) {
      this.askInTurn('alone')
      await this.answer(this.#sent.length - 1)
    }
  }

  /** Time goes on, and whatever is due happens. */
  advance(ms: number): void {
    this.nowMs += ms
    for (const timer of [...this.timers].filter(({ dueMs }) => dueMs <= this.nowMs)) {
      this.timers.splice(this.timers.indexOf(timer), 1)
      timer.run()
    }
  }

  #schedule(ms: number, run: () => void): () => void {
    const timer = { dueMs: this.nowMs + ms, run }
    this.timers.push(timer)
    return () => void this.timers.splice(this.timers.indexOf(timer), 1)
  }

  #call(call: DecideCall): Promise<DecideReply> {
    this.#note('call', call)
    if (this.#writesLater) this.#turnEnds.push(() => this.#note('written', call))
    return new Promise((resolve, reject) => void this.#sent.push({ call, resolve, reject }))
  }

  #note(what: string, call: DecideCall): void {
    this.events.push(`${what}: ${keysOf(call).join(' ')}`)
  }
}

/** Everything that awaits something that is there already has gone on. */
function promisesSettled(): Promise<void> {
  return new Promise((resolve) => runAfterIo(resolve))
}

/** A scheduler with two calls in flight, `first` and `second`. */
function busyScene(options: { readonly writesLater?: boolean } = {}): Scene {
  const scene = new Scene(options)
  scene.askInTurn('first')
  scene.askInTurn('second')
  expect(scene.calls).toEqual([['first'], ['second']])
  return scene
}

/** A scheduler with nothing in flight, on which 200 batches were open at once a moment ago. */
async function crowdedScene(): Promise<Scene> {
  const scene = new Scene()
  scene.scheduler.addAgain(groupOn('crowd', 200))
  scene.endTurn()
  await scene.answer(0)
  expect(scene.sizes).toEqual([200])
  return scene
}

/** The callers stop waiting for the replies. */
function abandon(batches: readonly TestBatch[]): void {
  for (const batch of batches) batch.isAbandoned = true
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `key-${index}`)
}

describe('with no call in flight', () => {
  it('the first batch is sent at once, the others of its turn together at the end', () => {
    const scene = new Scene()
    scene.ask('a', 'b', 'a', 'b')
    expect(scene.calls).toEqual([['a']])
    scene.endTurn()
    expect(scene.calls).toEqual([['a'], ['b', 'b', 'a']])
  })

  it('every batch of a sequential caller is sent at once', async () => {
    const scene = new Scene()
    for (const key of ['a', 'b', 'c']) {
      scene.ask(key)
      expect(scene.calls.at(-1)).toEqual([key])
      await scene.answer(scene.calls.length - 1)
    }
  })

  it('all batches are sent together after a turn with many callers', async () => {
    const scene = await crowdedScene()
    scene.ask('a', 'b', 'a')
    expect(scene.sizes).toEqual([200])
    scene.endTurn()
    expect(scene.calls.slice(1)).toEqual([['a', 'a', 'b']])
  })

  it('64 batches are sent before the turn ends, later ones at its end', () => {
    const scene = new Scene()
    scene.askTimes(64, 'a')
    expect(scene.sizes).toEqual([1])
    scene.askTimes(2, 'a')
    expect(scene.sizes).toEqual([1, 64])
    scene.endTurn()
    expect(scene.sizes).toEqual([1, 64, 1])
  })

  it('32 are sent before the turn ends when as many were open recently', async () => {
    const scene = new Scene()
    scene.askInTurn(...numbered(33))
    await scene.answer(0, 1)
    scene.askTimes(31, 'a')
    expect(scene.sizes).toEqual([1, 32])
    scene.askTimes(2, 'a')
    expect(scene.sizes).toEqual([1, 32, 32])
    // The rest goes along at the end of the turn: it would have to wait otherwise.
    scene.endTurn()
    expect(scene.sizes).toEqual([1, 32, 32, 1])
    expect(scene.timers).toEqual([])
  })

  it('batches whose keys fill a call are sent before the turn ends', () => {
    const scene = new Scene()
    scene.askOfThreeKeys(43)
    expect(scene.sizes).toEqual([1])
    scene.askOfThreeKeys(1)
    expect(scene.sizes).toEqual([1, 43])
  })
})

describe('with one call in flight', () => {
  it('with few callers, a batch is sent at the end of its turn, whatever was sent before', async () => {
    const scene = new Scene()
    await scene.askAlone(200)
    scene.askInTurn('a')
    scene.askInTurn('b')
    expect(scene.calls.slice(200)).toEqual([['a'], ['b']])
  })

  it('with many callers, a turn end sends the pending batches 1 ms after the last call, not sooner', async () => {
    const scene = await crowdedScene()
    scene.askInTurn('a')
    scene.nowMs = 0.99
    scene.askInTurn('b')
    expect(scene.sizes).toEqual([200, 1])
    scene.nowMs = 1
    scene.askInTurn('c')
    expect(scene.calls.slice(2)).toEqual([['b', 'c']])
  })

  it('with many callers, pending batches are sent once half of the callers have asked', async () => {
    const scene = await crowdedScene()
    scene.askInTurn('a')
    scene.askTimes(99, 'b')
    scene.endTurn()
    expect(scene.sizes).toEqual([200, 1])
    scene.ask('b')
    expect(scene.sizes).toEqual([200, 1, 100])
  })
})

describe('with two calls in flight', () => {
  it('batches wait over several turns, and a reply sends them in one call', async () => {
    const scene = busyScene()
    scene.askInTurn('a')
    scene.askInTurn('b', 'c')
    expect(scene.calls).toHaveLength(2)
    await scene.answerInTurn(0)
    expect(scene.calls.slice(2)).toEqual([['a', 'b', 'c']])
  })

  it('full calls are sent at the end of the turn, because waiting saves none; the rest waits', async () => {
    const scene = busyScene()
    scene.askInTurn(...numbered(258))
    expect(scene.sizes.slice(2)).toEqual([128, 128])
    await scene.answerInTurn(0)
    await scene.answerInTurn(1)
    await scene.answerInTurn(2)
    expect(scene.sizes.slice(2)).toEqual([128, 128, 2])
  })

  it('held batches are sent after 1 ms even if nothing else happens', () => {
    const scene = busyScene()
    scene.askInTurn('a')
    scene.advance(0.99)
    expect(scene.calls).toHaveLength(2)
    scene.advance(0.01)
    expect(scene.calls.slice(2)).toEqual([['a']])
    expect(scene.timers).toEqual([])
  })

  it('a batch that must wait again is reconsidered later', () => {
    const scene = busyScene()
    scene.askInTurn('a')
    scene.nowMs = 0.8
    scene.askInTurn('b')
    scene.ask('c')
    scene.advance(0.2)
    expect(scene.calls.slice(2)).toEqual([['a', 'b']])
    scene.endTurn()
    scene.advance(1)
    expect(scene.calls.slice(3)).toEqual([['c']])
  })

  it('a batch of several keys counts as that many, so that no call takes much longer', async () => {
    const scene = busyScene()
    scene.askOfThreeKeys(50)
    scene.endTurn()
    // 43 times 3 is the first that is not below 128.
    expect(scene.sizes.slice(2)).toEqual([43])
    await scene.answerInTurn(0)
    await scene.answerInTurn(1)
    expect(scene.sizes.slice(2)).toEqual([43, 7])
  })

  it('a reply sends the pending and the new batches at the end of its turn, before its callbacks run', async () => {
    const scene = busyScene()
    scene.askInTurn('a')
    await scene.answer(0)
    scene.ask('b')
    expect(scene.events.slice(2)).toEqual([])
    scene.endTurn()
    expect(scene.events.slice(2)).toEqual(['call: a b', 'answered: first'])
  })

  it('callbacks run at once when no batch is pending', async () => {
    const scene = busyScene()
    await scene.answer(0)
    expect(scene.events.slice(2)).toEqual(['answered: first'])
  })

  it('a client that writes at the end of a turn gets the pending batches first, before callbacks run', async () => {
    const scene = busyScene({ writesLater: true })
    scene.askInTurn('a')
    expect(scene.events).toHaveLength(4)
    // Asked in the turn of the answer, before it, so that this turn's end is waited for already.
    scene.ask('b')
    await scene.answer(0)
    scene.ask('c')
    expect(scene.events.slice(4)).toEqual(['call: a b'])
    scene.endTurn()
    expect(scene.events.slice(4)).toEqual(['call: a b', 'written: a b', 'answered: first'])
  })

  it('a failed call sends the pending batches, after the callbacks of the failed one', async () => {
    const scene = busyScene()
    scene.askInTurn('a')
    await scene.fail(1, 'an outage')
    expect(scene.events.slice(2)).toEqual(['failed by an outage: second', 'call: a'])
  })

  it('replies that arrive together run their callbacks call by call, in one turn', async () => {
    const scene = busyScene()
    scene.whenAnswered = () => {
      scene.whenAnswered = () => undefined
      // Like a caller that awaits a reply.
      queueMicrotask(() => scene.ask('again'))
    }
    await scene.answer(0, 1)
    // The connection is idle again before the second reply is delivered.
    expect(scene.events.slice(2)).toEqual(['answered: first', 'call: again', 'answered: second'])
  })

  it('a full call that is added between callbacks is sent between them', async () => {
    const scene = busyScene()
    scene.whenAnswered = () => {
      scene.whenAnswered = () => undefined
      queueMicrotask(() => scene.askTimes(65, 'again'))
    }
    await scene.answer(0, 1)
    const again = Array.from({ length: 64 }, () => 'again').join(' ')
    expect(scene.events.slice(2)).toEqual(['answered: first', 'call: again', `call: ${again}`, 'answered: second'])
  })

  it('runs the remaining callbacks when one throws', async () => {
    const scene = busyScene()
    scene.askInTurn('a')
    await scene.answer(0)
    scene.whenAnswered = () => {
      scene.whenAnswered = () => undefined
      throw new Error('of the callback')
    }
    expect(() => scene.endTurn()).toThrow('of the callback')
    await scene.answer(1)
    expect(scene.events.slice(2)).toEqual(['call: a', 'answered: first', 'answered: second'])
  })

  it('a turn end sends a third call 0.3 ms after the last one, not sooner', () => {
    const soon = busyScene()
    soon.nowMs = 0.29
    soon.askInTurn('a')
    expect(soon.calls).toHaveLength(2)
    const late = busyScene()
    late.nowMs = 0.3
    late.askInTurn('a')
    late.askInTurn('b')
    expect(late.calls.slice(2)).toEqual([['a']])
  })

  it('held batches are sent with those of a later turn, 0.3 ms after the last call', () => {
    const scene = new Scene()
    scene.askInTurn('a')
    scene.askInTurn('b')
    scene.askInTurn('held')
    expect(scene.calls).toEqual([['a'], ['b']])
    scene.nowMs = 0.3
    scene.askInTurn('later')
    expect(scene.calls).toEqual([['a'], ['b'], ['held', 'later']])
  })

  it('at most 64 calls are in flight, however slow the network is', () => {
    const scene = new Scene()
    for (const key of numbered(70)) {
      scene.nowMs += 10
      scene.askInTurn(key)
    }
    expect(scene.calls).toHaveLength(64)
    scene.advance(949)
    expect(scene.calls).toHaveLength(64)
    // One after a second, by which a connection that hangs is found.
    scene.advance(1)
    expect(scene.sizes.slice(64)).toEqual([6])
  })
})

describe('in a cluster', () => {
  it('every subject has a call of its own, and none is held', () => {
    const scene = new Scene({ isCluster: true })
    scene.askInTurn('a', 'b', 'a', 'b')
    scene.askInTurn('c')
    expect(scene.calls).toEqual([['a'], ['b', 'b'], ['a'], ['c']])
  })
})

describe('a held batch', () => {
  it('counts as unsent until its call is sent', async () => {
    const scene = busyScene()
    const [held] = scene.askInTurn('a')
    expect(held!.isSent).toBe(false)
    await scene.answerInTurn(0)
    expect(held!.isSent).toBe(true)
  })
})

describe('batches abandoned before they were sent', () => {
  it('are never sent, not even at the end of their own turn', () => {
    const scene = new Scene()
    const [, gone] = scene.ask('first', 'a', 'b')
    abandon([gone!])
    scene.endTurn()
    expect(scene.calls).toEqual([['first'], ['b']])
    expect(gone!.isSent).toBe(false)
  })

  it('are never sent; the others are sent without them', async () => {
    const scene = busyScene()
    const [gone, , goneOfThree] = scene.askInTurn('a', 'b', 'c', 'c', 'c')
    abandon([gone!, goneOfThree!])
    await scene.answerInTurn(0)
    expect(scene.calls.slice(2)).toEqual([['b', 'c', 'c']])
  })

  it('make no call when there are no others', async () => {
    const scene = busyScene()
    abandon(scene.askInTurn('a', 'b'))
    await scene.answerInTurn(0, 1)
    scene.endTurn()
    expect(scene.calls).toHaveLength(2)
  })

  it('do not count as open: after an outage and 200 quiet calls, a second call is not held', async () => {
    const scene = busyScene()
    const batches = scene.askTimes(500, 'a')
    scene.endTurn()
    abandon(batches)
    await scene.fail(0, 'an outage')
    await scene.fail(1, 'an outage')
    await scene.askAlone(200)
    scene.askInTurn('b')
    scene.askInTurn('c')
    expect(scene.calls.slice(202)).toEqual([['b'], ['c']])
  })
})

describe('batches that are added again', () => {
  it('are sent at the end of the turn', () => {
    const scene = new Scene()
    scene.scheduler.addAgain(groupOn('a', 3))
    expect(scene.calls).toEqual([])
    scene.endTurn()
    expect(scene.calls).toEqual([['a', 'a', 'a']])
  })

  it('count as open: after 200 of them a second call waits for others', async () => {
    const scene = await crowdedScene()
    scene.askInTurn('a')
    scene.askInTurn('b')
    expect(scene.sizes).toEqual([200, 1])
  })

  it('count towards a call that is worth sending', async () => {
    const scene = await crowdedScene()
    scene.askInTurn('a')
    scene.scheduler.addAgain(groupOn('b', 99))
    scene.endTurn()
    expect(scene.sizes).toEqual([200, 1])
    scene.ask('c')
    expect(scene.sizes).toEqual([200, 1, 100])
  })
})

describe('closing', () => {
  it('rejects all unsent batches, of earlier turns and of this one; calls in flight are still answered', async () => {
    const scene = busyScene()
    scene.askInTurn(...numbered(258))
    scene.ask('late')
    expect(scene.sizes).toEqual([1, 1, 128, 128])
    const before = scene.events.length
    scene.scheduler.close('closing')
    const keys = numbered(258)
    expect(scene.events.slice(before)).toEqual([
      `failed by closing: ${keys.slice(256).join(' ')}`,
      'failed by closing: late',
    ])
    scene.endTurn()
    expect(scene.timers).toEqual([])
    await scene.answer(1, 2)
    scene.endTurn()
    expect(scene.events.slice(before + 2)).toEqual(['answered: second', `answered: ${keys.slice(0, 128).join(' ')}`])
  })
})
