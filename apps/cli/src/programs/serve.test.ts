import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import type { ServiceEvent } from './serve.ts'
import { readStartup } from './serve.ts'

const KEY_LINES = 'The first API key, which may do everything and is shown only now:\n  slk_4f9d1c_secret\n'
const UP = [
  'Sluice is running.',
  '  check API   http://127.0.0.1:8080/internal/ratelimit/check',
  '  health      http://127.0.0.1:8080/livez and http://127.0.0.1:8080/readyz',
  'Try it:',
  '  curl -i http://127.0.0.1:8080/internal/ratelimit/check\n',
].join('\n')
const STOPPING = 'Shutting down: finishing in-flight requests. Press Ctrl-C again to force.\n'

const URL = 'http://127.0.0.1:8080'
const firstKey = 'slk_4f9d1c_secret'

async function eventsOf(text: string, pieceLength: number): Promise<readonly ServiceEvent[]> {
  const count = Math.ceil(text.length / pieceLength)
  const pieces = Array.from({ length: count }, (_, at) => text.slice(at * pieceLength, (at + 1) * pieceLength))
  const events: ServiceEvent[] = []
  for await (const event of readStartup(Readable.from(pieces))) events.push(event)
  return events
}

it.each([
  ['a first start', KEY_LINES + UP + STOPPING, [{ event: 'started', url: URL, firstKey }]],
  ['a later one', UP + STOPPING, [{ event: 'started', url: URL, firstKey: null }]],
  [
    'a first start without the database',
    UP + KEY_LINES + STOPPING,
    [
      { event: 'started', url: URL, firstKey: null },
      { event: 'firstKey', firstKey },
    ],
  ],
  ['a first start that is interrupted', KEY_LINES, [{ event: 'firstKey', firstKey }]],
  ['a start that fails', '', []],
])('%s tells all there is to know, in whatever pieces it comes', async (_, text, events) => {
  for (const pieceLength of [1, 7, 100]) expect(await eventsOf(text, pieceLength)).toEqual(events)
})
