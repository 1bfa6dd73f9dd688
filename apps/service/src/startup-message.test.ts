import { expect, it } from 'vitest'
import { DEFAULT_RULE } from './check-api/named-rule.ts'
import { startupMessage } from './startup-message.ts'

const messageAt = (host: string): string => startupMessage({ host, port: 8080, rule: DEFAULT_RULE })

it('says what runs, where, by which rule, who can reach it, and what to try', () => {
  expect(messageAt('127.0.0.1').split('\n')).toEqual([
    'Sluice is running.',
    '  check API   http://127.0.0.1:8080/internal/ratelimit/check',
    '  health      http://127.0.0.1:8080/livez',
    '  rule        default: 100 per 1m for each user (gcra, in memory)',
    '  reach       this machine only; HOST=0.0.0.0 npm start opens it to others',
    'Try it:',
    `  curl -i http://127.0.0.1:8080/internal/ratelimit/check -H 'Content-Type: application/json' -d '{"userId":"user-123","resource":"/api/v1/data"}'`,
  ])
})

it.each([
  ['0.0.0.0', 'http://127.0.0.1:8080/', 'without authentication'],
  ['::', 'http://[::1]:8080/', 'without authentication'],
  ['::1', 'http://[::1]:8080/', 'this machine only'],
  ['localhost', 'http://localhost:8080/', 'this machine only'],
  ['192.0.2.7', 'http://192.0.2.7:8080/', 'without authentication'],
])('on %s shows addresses that can be connected to, and warns when others can', (host, address, reach) => {
  expect(messageAt(host)).toContain(address)
  expect(messageAt(host)).toContain(reach)
})
