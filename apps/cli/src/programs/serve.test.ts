import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import type { ServiceEvent } from './serve.ts'
import { serviceEvents } from './serve.ts'

const url = 'http://127.0.0.1:8080'
const firstKey = 'slk_4f9d1c_secret'
const STARTED = { event: 'started', url }
const KEY = { event: 'firstKey', firstKey }

it.each<[string, readonly object[], readonly ServiceEvent[]]>([
  ['a first start', [KEY, STARTED], [{ event: 'started', url, firstKey }]],
  [
    'a start with a listener for the admin API',
    [{ ...STARTED, adminUrl: 'http://127.0.0.1:9090' }],
    [{ event: 'started', url, adminUrl: 'http://127.0.0.1:9090', firstKey: null }],
  ],
  ['a later start', [STARTED], [{ event: 'started', url, firstKey: null }]],
  [
    'a first start without the database',
    [STARTED, KEY],
    [
      { event: 'started', url, firstKey: null },
      { event: 'firstKey', firstKey },
    ],
  ],
  ['a first start that is interrupted', [KEY], [{ event: 'firstKey', firstKey }]],
  ['a start that fails', [], []],
  ['an unknown message', [{ event: 'other' }, STARTED], [{ event: 'started', url, firstKey: null }]],
])('%s yields its events', async (_, messages, expected) => {
  const events: ServiceEvent[] = []
  for await (const event of serviceEvents(Readable.from(messages))) events.push(event)
  expect(events).toEqual(expected)
})
