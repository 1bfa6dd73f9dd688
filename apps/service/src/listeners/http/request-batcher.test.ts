import { describe, expect, it } from 'vitest'
import type { Exchange } from './request-server.ts'
import { RequestBatcher } from './request-server.ts'

interface Scene {
  readonly turn: RequestBatcher<string>
  /** What was done, in order. */
  readonly done: string[]
  /** What runs at the end of the turn. */
  readonly ends: (() => void)[]
  request(name: string): Exchange & { response: { destroyed: boolean } }
}

function scene(): Scene {
  const done: string[] = []
  const ends: (() => void)[] = []
  const nameOf = (exchange: Exchange): string => exchange.params['name']!
  const turn = new RequestBatcher<string>({
    atTurnEnd: (run) => ends.push(run),
    decide: (exchange) => {
      done.push(`decide ${nameOf(exchange)}`)
      return `answer to ${nameOf(exchange)}`
    },
    send: (_, answer) => done.push(`send ${answer}`),
  })
  const request = (name: string): ReturnType<Scene['request']> =>
    ({ params: { name }, response: { destroyed: false } }) as unknown as ReturnType<Scene['request']>
  return { turn, done, ends, request }
}

describe('the requests of one turn', () => {
  it('are decided in their order when it ends, and then answered in the same', () => {
    const { turn, done, ends, request } = scene()
    for (const name of ['a', 'b', 'c']) turn.add(request(name))
    expect([done, ends.length]).toEqual([[], 1])
    ends[0]!()
    expect(done).toEqual([
      ...['decide a', 'decide b', 'decide c'],
      ...['send answer to a', 'send answer to b', 'send answer to c'],
    ])
  })

  it('are those that came before it ended; the next go with the next', () => {
    const { turn, done, ends, request } = scene()
    turn.add(request('a'))
    ends[0]!()
    turn.add(request('b'))
    expect(ends).toHaveLength(2)
    ends[1]!()
    expect(done).toEqual(['decide a', 'send answer to a', 'decide b', 'send answer to b'])
  })

  it('are answered in parts when there are many, so that the first do not wait for the last', () => {
    const { turn, done, ends, request } = scene()
    for (let name = 0; name < 130; name++) turn.add(request(String(name)))
    expect(done).toHaveLength(256)
    ends[0]!()
    expect(done).toHaveLength(260)
    expect(done.indexOf('send answer to 0')).toBe(64)
    expect(done.indexOf('decide 64')).toBe(128)
    expect(done.at(-1)).toBe('send answer to 129')
  })

  it('are not decided when their clients have gone', () => {
    const { turn, done, ends, request } = scene()
    const gone = request('gone')
    turn.add(request('a'))
    turn.add(gone)
    gone.response.destroyed = true
    ends[0]!()
    expect(done).toEqual(['decide a', 'send answer to a'])
  })
})
