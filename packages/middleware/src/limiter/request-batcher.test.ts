import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { RequestBatcher } from './request-batcher.ts'

/** A batcher whose turns end by hand. */
class Scene {
  readonly batcher: RequestBatcher
  /** What went on, in order. */
  readonly gone: string[] = []
  #ends: (() => void)[] = []

  constructor() {
    this.batcher = new RequestBatcher((run) => void this.#ends.push(run))
  }

  /** A request that goes on when it may. Gives whether it is held back. */
  ask(name: string, goOn: () => void = () => this.gone.push(name)): boolean {
    const together = this.batcher.join()
    if (together === undefined) goOn()
    else void together.then(goOn)
    return together !== undefined
  }

  /** How many of `count` requests in one turn are held back until it ends. */
  async turn(size: number): Promise<number> {
    let held = 0
    for (let index = 0; index < size; index++) if (this.ask(`${index}`)) held++
    await this.endTurn()
    return held
  }

  async endTurn(): Promise<void> {
    const ends = this.#ends
    this.#ends = []
    for (const end of ends) end()
    await Promise.resolve()
    await Promise.resolve()
  }

  /** How often the end of a turn was requested. */
  get asked(): number {
    return this.#ends.length
  }
}

describe('few requests at once', () => {
  it('are never held back', async () => {
    const scene = new Scene()
    const held: number[] = []
    for (const size of [1, 3, 1, 2, 3, 3, 1]) held.push(await scene.turn(size))
    expect(held).toEqual([0, 0, 0, 0, 0, 0, 0])
    expect(scene.gone).toHaveLength(14)
  })
})

describe('many requests at once', () => {
  it('go on together at the end of their turn, in order, after a turn with as many', async () => {
    const scene = new Scene()
    expect(await scene.turn(4)).toBe(0)
    scene.gone.length = 0
    for (const name of ['a', 'b', 'c', 'd']) expect(scene.ask(name)).toBe(true)
    expect([scene.gone, scene.asked]).toEqual([[], 1])
    await scene.endTurn()
    expect(scene.gone).toEqual(['a', 'b', 'c', 'd'])
  })

  it('are a crowd until only one comes in a turn', async () => {
    const scene = new Scene()
    const held: number[] = []
    for (const size of [4, 2, 3, 2, 1, 1, 3, 4, 4]) held.push(await scene.turn(size))
    expect(held).toEqual([0, 2, 3, 2, 1, 0, 0, 0, 4])
  })

  it('go on before their turn has ended when there are very many', async () => {
    const scene = new Scene()
    await scene.turn(4)
    scene.gone.length = 0
    const names = Array.from({ length: 130 }, (_, index) => `${index}`)
    for (const name of names) expect(scene.ask(name)).toBe(true)
    // As soon as the code that reads them has run to its end.
    await Promise.resolve()
    await Promise.resolve()
    expect(scene.gone).toEqual(names.slice(0, 128))
    await scene.endTurn()
    expect(scene.gone).toEqual(names)
  })

  it('do not wait again at the next limiter', async () => {
    const scene = new Scene()
    await scene.turn(4)
    const held: boolean[] = []
    for (const name of ['a', 'b']) scene.ask(name, () => held.push(scene.ask(`${name} again`)))
    await scene.endTurn()
    expect(held).toEqual([false, false])
    expect(scene.gone.slice(-2)).toEqual(['a again', 'b again'])
    // Later ones do.
    expect(scene.ask('c')).toBe(true)
  })

  it('go on each in its own asynchronous context', async () => {
    const scene = new Scene()
    const context = new AsyncLocalStorage<string>()
    await scene.turn(4)
    const seen: (string | undefined)[] = []
    for (const name of ['a', 'b', 'c']) {
      context.run(name, () => scene.ask(name, () => seen.push(context.getStore())))
    }
    await scene.endTurn()
    expect(seen).toEqual(['a', 'b', 'c'])
  })

  it('one that fails does not keep the others back', async () => {
    const scene = new Scene()
    await scene.turn(4)
    const failed = scene.batcher.join()!.then(() => {
      throw new Error('of a handler')
    })
    scene.ask('b')
    const caught = failed.catch((error: Error) => error.message)
    await scene.endTurn()
    expect([await caught, scene.gone.at(-1)]).toEqual(['of a handler', 'b'])
  })
})
