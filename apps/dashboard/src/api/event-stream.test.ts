import { describe, expect, it } from 'vitest'
import { eventsOf } from './event-stream.ts'

async function eventsIn(...chunks: readonly string[]): Promise<string[]> {
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
  return await allOf(eventsOf(source))
}

async function allOf(events: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = []
  for await (const event of events) all.push(event)
  return all
}

describe('eventsOf', () => {
  it.each([
    ['one event', ['event: update\ndata: {"a":1}\n\n'], ['{"a":1}']],
    ['several in one chunk', ['data: 1\n\ndata: 2\n\n'], ['1', '2']],
    ['one in several chunks', ['da', 'ta: {"a"', ':1}\n', '\n'], ['{"a":1}']],
    ['data of several lines', ['data: [\ndata: 1]\n\n'], ['[\n1]']],
    ['line ends of Windows', ['data: 1\r\n\r\ndata: 2\r\n\r\n'], ['1', '2']],
    ['comments', [': keep open\n\ndata: 1\n\n'], ['1']],
    ['an event that was cut off', ['data: 1\n\ndata: 2'], ['1']],
  ])('reads %s', async (_, chunks, events) => {
    expect(await eventsIn(...chunks)).toEqual(events)
  })

  it('reads nothing where there is no body', async () => {
    expect(await allOf(eventsOf(null))).toEqual([])
  })
})
