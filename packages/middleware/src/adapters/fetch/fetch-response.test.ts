import { EventEmitter } from 'node:events'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { waitForDelay, watchResponse } from './fetch-response.ts'

/** A request whose client can leave, and the statuses that were reported for it. */
function scene({ method = 'GET', server }: { method?: string; server?: unknown } = {}) {
  const client = new AbortController()
  const request = new Request('http://localhost/', { method, signal: client.signal })
  const ended: number[] = []
  const watch = watchResponse(request, server, (status) => void ended.push(status))
  return { client, watch, ended }
}

/** A body of these parts, one for each pull, and what became of it. */
function source(parts: readonly string[]) {
  const seen = { pulls: 0, cancelled: undefined as unknown }
  const left = parts.map((part) => new TextEncoder().encode(part))
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        seen.pulls += 1
        const next = left.shift()
        if (next === undefined) controller.close()
        else controller.enqueue(next)
      },
      cancel(reason) {
        seen.cancelled = reason
      },
    },
    { highWaterMark: 0 },
  )
  return { body, seen }
}

describe('an answer that is watched', () => {
  it('ends when the last of its body has been read, and is otherwise the same', async () => {
    const { watch, ended } = scene()
    const { body } = source(['one', 'two'])
    const response = watch.answered(new Response(body, { status: 201, headers: { 'x-own': 'yes' } }))
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('one')
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('two')
    expect(ended).toEqual([])
    expect((await reader.read()).done).toBe(true)
    expect(ended).toEqual([201])
    expect([response.status, response.headers.get('x-own')]).toEqual([201, 'yes'])
  })

  it('is read no further than its reader reads', async () => {
    const { watch } = scene()
    const { body, seen } = source(['one', 'two'])
    const reader = watch.answered(new Response(body)).body!.getReader()
    expect(seen.pulls).toBe(0)
    await reader.read()
    expect(seen.pulls).toBe(1)
  })

  it('ends when its reader cancels, which its source learns', async () => {
    const { watch, ended } = scene()
    const { body, seen } = source(['one', 'two'])
    const reader = watch.answered(new Response(body)).body!.getReader()
    await reader.read()
    await reader.cancel('enough')
    expect(ended).toEqual([200])
    expect(seen.cancelled).toBe('enough')
  })

  it('ends when its source fails, which its reader learns', async () => {
    const { watch, ended } = scene()
    const body = new ReadableStream({
      pull() {
        throw new Error('torn')
      },
    })
    const response = watch.answered(new Response(body))
    await expect(response.text()).rejects.toThrow('torn')
    expect(ended).toEqual([200])
  })

  it.each([
    ['without a body', 'GET', () => new Response(null, { status: 204 }), 204],
    ['to HEAD, whose body is not read', 'HEAD', () => new Response('body'), 200],
    ['that is a failure', 'GET', () => Response.error(), 0],
  ])('%s ends at once', (_, method, answer, status) => {
    const { watch, ended } = scene({ method })
    const response = answer()
    expect(watch.answered(response)).toBe(response)
    expect(ended).toEqual([status])
  })

  it('ends at once when its body is read elsewhere', () => {
    const { watch, ended } = scene()
    const response = new Response('body')
    response.body!.getReader()
    expect(watch.answered(response)).toBe(response)
    expect(ended).toEqual([200])
  })

  it('ends without a status when the client leaves before there is one, once', async () => {
    const { client, watch, ended } = scene()
    client.abort()
    expect(ended).toEqual([0])
    const response = new Response('late')
    expect(watch.answered(response)).toBe(response)
    await response.text()
    watch.failed()
    expect(ended).toEqual([0])
  })

  it('ends without a status when the client has left already', () => {
    const ended: number[] = []
    const request = new Request('http://localhost/', { signal: AbortSignal.abort() })
    watchResponse(request, undefined, (status) => void ended.push(status))
    expect(ended).toEqual([0])
  })

  it('ends with its status when the client leaves while it is sent', () => {
    const { client, watch, ended } = scene()
    watch.answered(new Response('body', { status: 206 }))
    expect(ended).toEqual([])
    client.abort()
    expect(ended).toEqual([206])
  })

  it('is 500 when the handler throws', () => {
    const { watch, ended } = scene()
    watch.failed()
    expect(ended).toEqual([500])
  })
})

describe('an answer that Node sends', () => {
  function nodeScene(state: object = {}) {
    const outgoing = Object.assign(new EventEmitter(), { statusCode: 200, headersSent: false }, state)
    return { outgoing, ...scene({ server: { outgoing } }) }
  }

  it('ends when Node says so, and is not touched', () => {
    const { outgoing, watch, ended } = nodeScene()
    const response = new Response('body')
    expect(watch.answered(response)).toBe(response)
    expect(ended).toEqual([])
    Object.assign(outgoing, { statusCode: 503, headersSent: true }).emit('close')
    expect(ended).toEqual([503])
  })

  it('ends without a status when the connection closes before there is one', () => {
    const { outgoing, ended } = nodeScene()
    outgoing.emit('close')
    expect(ended).toEqual([0])
  })

  it.each([[{ closed: true }], [{ destroyed: true }]])('ends at once when it is over already: %j', (state) => {
    expect(nodeScene(state).ended).toEqual([0])
  })

  it('is whatever Node sends when the handler throws', () => {
    const { outgoing, watch, ended } = nodeScene()
    watch.failed()
    expect(ended).toEqual([])
    Object.assign(outgoing, { statusCode: 418, headersSent: true }).emit('close')
    expect(ended).toEqual([418])
  })
})

describe('waiting for a turn', () => {
  function turnScene() {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const client = new AbortController()
    const request = new Request('http://localhost/', { signal: client.signal })
    return { timers, client, turn: waitForDelay(request, 250, timers) }
  }

  it('ends with the turn', async () => {
    const { timers, turn } = turnScene()
    await timers.advance(250)
    expect(await turn).toBe(true)
    expect(timers.pending).toBe(0)
  })

  it('ends when the client leaves, and leaves no timer', async () => {
    const { timers, client, turn } = turnScene()
    client.abort()
    expect(await turn).toBe(false)
    expect(timers.pending).toBe(0)
  })

  it('does not begin when the client has left', async () => {
    const timers = new FakeTimers(new FakeClock())
    const request = new Request('http://localhost/', { signal: AbortSignal.abort() })
    expect(await waitForDelay(request, 250, timers)).toBe(false)
    expect(timers.pending).toBe(0)
  })
})
