import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { FakeTimers } from '../../fakes/fake-timers.ts'
import { pollUntil } from './poll-until.ts'

function makeTimers(): FakeTimers {
  return new FakeTimers(new FakeClock())
}

describe('pollUntil', () => {
  it('asks every 10 ms until there is an answer, and leaves no timer', async () => {
    const timers = makeTimers()
    const answers = [undefined, undefined, 'here', 'too late']
    const answer = pollUntil(() => Promise.resolve(answers.shift()), { what: 'it', timers })
    await timers.advance(19)
    expect(answers).toEqual(['here', 'too late'])
    await timers.advance(1)
    expect(await answer).toBe('here')
    expect(timers.pending).toBe(0)
  })

  it('gives up when the time is over, and says what stood in the way', async () => {
    const timers = makeTimers()
    let asked = 0
    const options = { what: 'a miracle', withinMs: 50, explain: () => `Asked ${asked} times.`, timers }
    const answer = pollUntil(() => {
      asked++
      return Promise.resolve(undefined)
    }, options)
    const failure = expect(answer).rejects.toThrow(
      'SLUICE_TESTING_TOO_SLOW: waited 50 ms for a miracle, in vain. Asked 6 times.',
    )
    await timers.advance(60)
    await failure
    expect(timers.pending).toBe(0)
  })

  it('ends with the failure of an answer', async () => {
    const timers = makeTimers()
    await expect(pollUntil(() => Promise.reject(new Error('broken')), { what: 'it', timers })).rejects.toThrow('broken')
    expect(timers.pending).toBe(0)
  })
})
