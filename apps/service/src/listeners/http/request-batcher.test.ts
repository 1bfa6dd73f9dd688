import { describe, expect, it } from 'vitest'
import { RequestBatcher } from './request-batcher.ts'
import type { Exchange } from './request-server.ts'

interface Scene {
  readonly batcher: RequestBatcher<Exchange, string>
  /** Everything that happened, in order. */
  readonly events: string[]
  /** Ends the event loop iteration, for which one callback waits. */
  endTurn(): void
  request(name: string): Exchange & { response: { destroyed: boolean } }
}

function scene(): Scene {
  const events: string[] = []
  const callbacks: (() => void)[] = []
  const nameOf = (exchange: Exchange): string => exchange.params['name']!
  const batcher = new RequestBatcher<Exchange, string>({
    atTurnEnd: (run) => void callbacks.push(run),
    decide: (exchange) => {
      events.push(`decide ${nameOf(exchange)}`)
      return `answer to ${nameOf(exchange)}`
    },
    send: (_, answer) => events.push(`send ${answer}`),
  })
  const request = (name: string): ReturnType<Scene['request']> =>
    ({ params: { name }, response: { destroyed: false } }) as unknown as ReturnType<Scene['request']>
  const endTurn = (): void => {
    expect(callbacks).toHaveLength(1)
    callbacks.pop()!()
  }
  return { batcher, events, endTurn, request }
}

/** A batcher after an iteration with four requests, whose events are forgotten. */
function busyScene(): Scene {
  const made = scene()
  for (const name of ['1', '2', '3', '4']) made.batcher.add(made.request(name))
  made.endTurn()
  made.events.length = 0
  return made
}

describe('while few requests arrive', () => {
  it('each is answered at once', () => {
    const { batcher, events, endTurn, request } = scene()
    for (const name of ['a', 'b', 'c']) {
      batcher.add(request(name))
      expect(events.at(-1)).toBe(`send answer to ${name}`)
    }
    endTurn()
    expect(events).toEqual(['a', 'b', 'c'].flatMap((name) => [`decide ${name}`, `send answer to ${name}`]))
  })

  it('seven of them are not counted after an iteration with few, and batching starts after that', () => {
    const { batcher, events, endTurn, request } = scene()
    batcher.add(request('first'))
    endTurn()
    // A callback at the end of the iteration would be one too many for the next call of `endTurn`.
    for (let name = 0; name < 7; name++) batcher.add(request(`uncounted ${name}`))
    for (let name = 0; name < 4; name++) batcher.add(request(`counted ${name}`))
    expect(events).toHaveLength(24)
    endTurn()
    batcher.add(request('waiting'))
    expect(events).toHaveLength(24)
    endTurn()
    expect(events.slice(24)).toEqual(['decide waiting', 'send answer to waiting'])
  })

  it('an iteration of four starts batching, and one with a single request ends it', () => {
    const { batcher, events, endTurn, request } = busyScene()
    batcher.add(request('a'))
    expect(events).toEqual([])
    endTurn()
    batcher.add(request('b'))
    expect(events).toEqual(['decide a', 'send answer to a', 'decide b', 'send answer to b'])
  })
})

describe('while many requests arrive', () => {
  it('those of one iteration are decided in their order when it ends, and then answered in the same', () => {
    const { batcher, events, endTurn, request } = busyScene()
    for (const name of ['a', 'b', 'c']) batcher.add(request(name))
    expect(events).toEqual([])
    endTurn()
    expect(events).toEqual([
      ...['decide a', 'decide b', 'decide c'],
      ...['send answer to a', 'send answer to b', 'send answer to c'],
    ])
    batcher.add(request('d'))
    expect(events).toHaveLength(6)
  })

  it('they are answered in parts, so that the first do not wait for the last', () => {
    const { batcher, events, endTurn, request } = busyScene()
    for (let name = 0; name < 130; name++) batcher.add(request(String(name)))
    expect(events).toHaveLength(256)
    endTurn()
    expect(events).toHaveLength(260)
    expect(events.indexOf('send answer to 0')).toBe(64)
    expect(events.indexOf('decide 64')).toBe(128)
    expect(events.at(-1)).toBe('send answer to 129')
  })

  it('those whose clients have gone are not decided', () => {
    const { batcher, events, endTurn, request } = busyScene()
    const gone = request('gone')
    batcher.add(request('a'))
    batcher.add(gone)
    gone.response.destroyed = true
    endTurn()
    expect(events).toEqual(['decide a', 'send answer to a'])
  })
})
