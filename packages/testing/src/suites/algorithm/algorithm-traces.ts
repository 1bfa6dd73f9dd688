import type { AlgorithmName } from '../../properties/arbitraries.ts'
import type { Trace } from './trace.ts'

/** Worked examples of every algorithm. */
export const TRACES: { readonly [A in AlgorithmName]: readonly Trace[] } = {
  'token-bucket': [
    {
      title: 'starts full, denies when empty, and gives back a token at a time',
      rule: { algorithm: 'token-bucket', capacity: 3, refillPerSecond: 2 },
      steps: `
        at        cost  ruling   left  retry  reset
        0         1     allowed  2     -      500ms
        0         2     allowed  0     -      1500ms
        0         1     limit    0     500ms  1500ms
        0         3     limit    0     1500ms 1500ms
        0         4     never    0     never  1500ms
        499999us  1     limit    0     1us    1000001us
        500ms     1     allowed  0     -      1500ms
        1750ms    3     limit    2     250ms  250ms
        1750ms    0     allowed  2     -      250ms
        2s        3     allowed  0     -      1500ms
        1m        1     allowed  2     -      500ms
      `,
    },
    {
      title: 'refills at a fraction of a token per second without losing any',
      rule: { algorithm: 'token-bucket', capacity: 1, refillPerSecond: 1 / 3 },
      steps: `
        at         cost  ruling   left  retry  reset
        0          1     allowed  0     -      3s
        2999999us  1     limit    0     1us    1us
        3s         1     allowed  0     -      3s
        6s         1     allowed  0     -      3s
        9s         1     allowed  0     -      3s
      `,
    },
    {
      title: 'holds a fraction of a token beyond the whole ones',
      rule: { algorithm: 'token-bucket', capacity: 2.5, refillPerSecond: 1 },
      steps: `
        at        cost  ruling   left  retry  reset
        0         3     never    2     never  -
        0         2     allowed  0     -      2s
        499999us  1     limit    0     1us    1500001us
        500ms     1     allowed  0     -      2500ms
        1499999us 1     limit    0     1us    1500001us
        1500ms    1     allowed  0     -      2500ms
        4s        2     allowed  0     -      2s
      `,
    },
    {
      title: 'denies all when the capacity is 0',
      rule: { algorithm: 'token-bucket', capacity: 0, refillPerSecond: 5 },
      steps: `
        at  cost  ruling  left  retry  reset
        0   1     never   0     never  -
        1d  0     never   0     never  -
      `,
    },
  ],
  'token-bucket-rollover': [
    {
      title: 'keeps what finds the bucket full, up to twice the capacity, until the key was idle for two refills',
      rule: { algorithm: 'token-bucket', capacity: 4, refillPerSecond: 1, rollover: true },
      steps: `
        at          cost  ruling   left  retry  reset
        0           5     never    4     never  -
        0           4     allowed  0     -      4s
        0           5     limit    0     5s     4s
        0           8     limit    0     8s     4s
        0           9     never    0     never  4s
        4s          0     allowed  4     -      -
        6s          6     allowed  0     -      4s
        10s         0     allowed  4     -      -
        14s         8     allowed  0     -      4s
        25999999us  8     allowed  0     -      4s
        37999998us  0     allowed  8     -      -
        37999999us  0     allowed  4     -      -
        38s         5     never    4     never  -
        38s         1     allowed  3     -      1s
        43s         0     allowed  8     -      -
        46s         1     allowed  7     -      -
        53999999us  0     allowed  8     -      -
        54s         0     allowed  4     -      -
      `,
    },
  ],
  'leaky-bucket-meter': [
    {
      title: 'takes a burst of its capacity, then what has leaked',
      rule: { algorithm: 'leaky-bucket-meter', capacity: 2, leakPerSecond: 4 },
      steps: `
        at     cost  ruling   left  retry  reset
        0      2     allowed  0     -      500ms
        100ms  1     limit    0     150ms  400ms
        250ms  1     allowed  0     -      500ms
        625ms  1     allowed  0     -      375ms
        625ms  3     never    0     never  375ms
      `,
    },
  ],
  'leaky-bucket-queue': [
    {
      title: 'lets calls out one every 100 ms and drops what finds no room',
      rule: { algorithm: 'leaky-bucket-queue', capacity: 3, ratePerSecond: 10 },
      steps: `
        at     cost  ruling   left  retry  reset  delay
        0      1     allowed  2     -      100ms  -
        0      1     allowed  1     -      200ms  100ms
        0      1     allowed  0     -      300ms  200ms
        0      1     limit    0     100ms  300ms  -
        50ms   1     limit    0     50ms   250ms  -
        100ms  1     allowed  0     -      300ms  200ms
        350ms  1     allowed  1     -      150ms  50ms
        1s     1     allowed  2     -      100ms  -
        1s     2     allowed  0     -      300ms  100ms
        1s     4     never    0     never  300ms  -
      `,
    },
  ],
  gcra: [
    {
      title: 'spreads the limit over the window after a first burst of it',
      rule: { limit: 4, window: '1s' },
      steps: `
        at     cost  ruling   left  retry  reset
        0      4     allowed  0     -      1s
        0      1     limit    0     250ms  1s
        250ms  1     allowed  0     -      1s
        250ms  2     limit    0     500ms  1s
        1s     3     allowed  0     -      1s
        1s     5     never    0     never  1s
      `,
    },
    {
      title: 'with a burst of 1 lets calls through at equal distances only',
      rule: { limit: 4, window: '1s', burst: 1 },
      steps: `
        at        cost  ruling   left  retry  reset
        0         1     allowed  0     -      250ms
        249999us  1     limit    0     1us    1us
        250ms     1     allowed  0     -      250ms
        1h        1     allowed  0     -      250ms
        1h        2     never    0     never  250ms
      `,
    },
  ],
  'fixed-window': [
    {
      title: 'starts again with every window: twice the limit can pass around a boundary',
      rule: { algorithm: 'fixed-window', limit: 3, window: '1s' },
      steps: `
        at        cost  ruling   left  retry  reset
        999ms     3     allowed  0     -      1ms
        999ms     1     limit    0     1ms    1ms
        999999us  1     limit    0     1us    1us
        1s        3     allowed  0     -      1s
        1s        4     never    0     never  1s
        5500ms    1     allowed  2     -      500ms
      `,
    },
    {
      title: 'carries unused units over once, up to twice the limit',
      rule: { algorithm: 'fixed-window', limit: 4, window: '1s', rollover: true },
      steps: `
        at      cost  ruling   left  retry   reset
        0       1     allowed  3     -       1s
        0       6     limit    3     1s      1s
        0       8     limit    3     2s      1s
        1s      6     allowed  1     -       1s
        1s      2     limit    1     1s      1s
        2s      5     allowed  0     -       1s
        3s      4     allowed  0     -       1s
        5s      8     allowed  0     -       1s
        8s      4     allowed  0     -       1s
        8s      9     never    0     never   1s
      `,
    },
    {
      title: 'follows the calendar: a month from its first to its last day',
      rule: { algorithm: 'fixed-window', limit: 2, window: { calendar: 'month' } },
      steps: `
        at   cost  ruling   left  retry  reset
        0    2     allowed  0     -      31d
        30d  1     limit    0     1d     1d
        31d  2     allowed  0     -      28d
        58d  1     limit    0     1d     1d
        59d  1     allowed  1     -      31d
      `,
    },
  ],
  'sliding-window-counter': [
    {
      title: 'weighs the window before by the part of it that is still in view',
      rule: { algorithm: 'sliding-window-counter', limit: 10, window: '1s' },
      steps: `
        at      cost  ruling   left  retry  reset
        0       10    allowed  0     -      2s
        500ms   1     limit    0     600ms  1500ms
        1s      1     limit    0     100ms  1s
        1099ms  1     limit    0     1ms    901ms
        1100ms  1     allowed  0     -      1900ms
        1500ms  4     allowed  0     -      1500ms
        1500ms  2     limit    0     200ms  1500ms
        1500ms  11    never    0     never  1500ms
        2500ms  8     limit    7     100ms  500ms
        2600ms  8     allowed  0     -      1400ms
      `,
    },
  ],
  'sliding-window-log': [
    {
      title: 'gives back each call exactly one window after it came',
      rule: { algorithm: 'sliding-window-log', limit: 3, window: '1s' },
      steps: `
        at         cost  ruling   left  retry   reset
        0          1     allowed  2     -       1s
        400ms      2     allowed  0     -       1s
        500ms      1     limit    0     500ms   900ms
        500ms      2     limit    0     900ms   900ms
        999999us   1     limit    0     1us     400001us
        1s         1     allowed  0     -       1s
        1s         4     never    0     never   1s
        1400ms     2     allowed  0     -       1s
      `,
    },
  ],
  'sliding-window-segments': [
    {
      title: 'gives units back when their sub-window is a whole window old',
      rule: { algorithm: 'sliding-window-log', limit: 3, window: '1s', segments: 4 },
      steps: `
        at      cost  ruling   left  retry   reset
        0       1     allowed  2     -       1250ms
        300ms   2     allowed  0     -       1200ms
        300ms   1     limit    0     950ms   1200ms
        1s      1     limit    0     250ms   500ms
        1249ms  1     limit    0     1ms     251ms
        1250ms  1     allowed  0     -       1250ms
        1250ms  3     limit    0     1250ms  1250ms
        1250ms  4     never    0     never   1250ms
        1500ms  2     allowed  0     -       1250ms
      `,
    },
  ],
  hybrid: [
    {
      title: 'pays from the window first, then, for those entitled, from the burst',
      rule: { algorithm: 'hybrid', limit: 2, window: '1s', burst: { capacity: 3, refillPerSecond: 1 } },
      steps: `
        at      cost  ruling   left  retry   reset
        0       1     allowed  4     -       1s
        0       (2)   limit    1     1s      1s
        0       (3)   never    1     never   1s
        0       3     allowed  1     -       2s
        0       (1)   limit    0     1s      2s
        0       1     allowed  0     -       3s
        0       1     limit    0     1s      3s
        1s      4     limit    3     1s      2s
        1s      3     allowed  0     -       3s
        2s      6     never    3     never   2s
        2s      5     limit    3     2s      2s
        4s      5     allowed  0     -       3s
      `,
    },
    {
      title: 'is a burst on a window: the burst at once, and the part above the limit refills over a window',
      rule: { algorithm: 'fixed-window', limit: 2, window: '1s', burst: 4 },
      steps: `
        at      cost  ruling   left  retry   reset
        0       4     allowed  0     -       1s
        0       1     limit    0     500ms   1s
        500ms   1     allowed  0     -       1s
        1s      4     limit    3     500ms   1s
        1s      3     allowed  0     -       1s
      `,
    },
  ],
  concurrency: [
    {
      title: 'holds slots until their lease ends',
      rule: { algorithm: 'concurrency', limit: 3, lease: '10s' },
      steps: `
        at         cost  ruling   left  retry   reset
        0          1     allowed  2     -       10s
        4s         2     allowed  0     -       10s
        5s         1     limit    0     5s      9s
        5s         2     limit    0     9s      9s
        9999999us  1     limit    0     1us     4000001us
        10s        1     allowed  0     -       10s
        10s        4     never    0     never   10s
        1h         3     allowed  0     -       10s
      `,
    },
  ],
}
