import { describe, expect, it } from 'vitest'
import { ExchangeWatch, WATCH_EVERY_MS, type Watched } from './exchange-watch.ts'

/** A watch, and what its timer would call next. */
function createWatch() {
  const due: (() => void)[] = []
  const schedule = (ms: number, run: () => void): (() => void) => {
    expect(ms).toBe(WATCH_EVERY_MS)
    due.push(run)
    return () => void due.splice(due.indexOf(run), 1)
  }
  const watch = new ExchangeWatch({ schedule }, () => 7)
  return { watch, due, tick: () => due.shift()!() }
}

function watched(name: string, seen: string[], onCheck: () => void = () => undefined): Watched {
  return {
    watchedAt: -1,
    check: (nowMs) => {
      seen.push(`${name} ${nowMs}`)
      onCheck()
    },
    leave: () => undefined,
  }
}

describe('the watch over requests in flight', () => {
  it('checks each of them, and none that has ended', () => {
    const { watch, tick } = createWatch()
    const seen: string[] = []
    const all = ['a', 'b', 'c', 'd'].map((name) => watched(name, seen))
    for (const each of all) watch.add(each)
    watch.remove(all[1]!)
    watch.remove(all[3]!)
    watch.remove(all[3]!)
    expect(watch.size).toBe(2)
    expect(new Set(watch.all())).toEqual(new Set([all[0], all[2]]))
    tick()
    expect(seen.sort()).toEqual(['a 7', 'c 7'])
  })

  it('checks the others if some end while it checks', () => {
    const { watch, tick } = createWatch()
    const seen: string[] = []
    const all: Watched[] = []
    const endAll = (): void => {
      for (const each of all.slice(0, 4)) watch.remove(each)
    }
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const each: Watched = watched(name, seen, name === 'd' ? endAll : () => watch.remove(each))
      if (name === 'e') each.check = (nowMs) => void seen.push(`e ${nowMs}`)
      all.push(each)
      watch.add(each)
    }
    tick()
    expect(new Set(seen)).toEqual(new Set(['f 7', 'e 7', 'd 7']))
    expect(watch.all()).toEqual([all[4]])
  })

  it('has a timer only while there is something to check', () => {
    const { watch, due, tick } = createWatch()
    expect(due).toHaveLength(0)
    const one = watched('a', [])
    watch.add(one)
    watch.add(watched('b', []))
    expect(due).toHaveLength(1)
    for (const each of watch.all()) watch.remove(each)
    tick()
    expect(due).toHaveLength(0)
    watch.add(one)
    watch.close()
    expect(due).toHaveLength(0)
  })
})
