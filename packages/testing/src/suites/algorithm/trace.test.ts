import { describe, expect, it } from 'vitest'
import { expectedTrace, replayTrace, type Trace } from './trace.ts'

const trace: Trace = {
  title: 'an example',
  rule: { algorithm: 'leaky-bucket-queue', capacity: 2, ratePerSecond: 10 },
  steps: `
    at     cost  ruling   left  retry  reset  delay
    0      1     allowed  1     -      100ms  -
    0      1     allowed  0     -      0.2s   100ms
    50ms   1     limit    0     50ms   150ms  -
    50ms   (3)   never    0     never  150000us  -
  `,
}

describe('a trace', () => {
  it('is played as it is written, whatever units it is written in', () => {
    expect(replayTrace(trace)).toEqual(expectedTrace(trace))
    expect(replayTrace(trace)[1]).toBe('at 0 cost 1: allowed, 0 left, retry -, reset 200ms, delay 100ms')
  })

  it('that is wrong in any column is not equal', () => {
    const wrongs = [
      trace.steps.replace('allowed  1', 'limit    1'),
      trace.steps.replace('allowed  1', 'allowed  2'),
      trace.steps.replace('50ms   150ms', '51ms   150ms'),
      trace.steps.replace('100ms  -', '101ms  -'),
      trace.steps.replace('0.2s   100ms', '0.2s   99ms'),
      trace.steps.replace('never  150000us', '1s  150000us'),
    ]
    for (const steps of wrongs) {
      expect(steps).not.toBe(trace.steps)
      expect(replayTrace(trace)).not.toEqual(expectedTrace({ ...trace, steps }))
    }
  })
})
