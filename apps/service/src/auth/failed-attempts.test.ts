import { FakeClock, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { FailedAttempts, sharedFailures } from './failed-attempts.ts'

describe('failed attempts', () => {
  it('are counted by threads together, for an address and for a key', () => {
    const clock = new FakeClock()
    const shared = sharedFailures(clock)
    const threads = [1, 2, 3].map((seed) => new FailedAttempts({ clock, random: seededRandom(seed), shared }))
    const countAt = (attempt: number, keyId: string | undefined, address: string): number =>
      threads[attempt % threads.length]!.count({ address, keyId })
    for (let attempt = 0; attempt < 20; attempt++) expect(countAt(attempt, `slk_${attempt}`, '192.0.2.1')).toBe(0)
    for (let attempt = 0; attempt < 3; attempt++) expect(countAt(attempt, undefined, '192.0.2.1')).toBe(3000)
    for (let attempt = 0; attempt < 10; attempt++) expect(countAt(attempt, 'slk_a', `192.0.2.${10 + attempt}`)).toBe(0)
    for (let attempt = 0; attempt < 3; attempt++) expect(countAt(attempt, 'slk_a', '198.51.100.1')).toBe(6000)
  })

  it('are counted by a thread for itself where it is alone', () => {
    const clock = new FakeClock()
    const [one, other] = [1, 2].map((seed) => new FailedAttempts({ clock, random: seededRandom(seed) }))
    const attempt = { address: '192.0.2.1', keyId: undefined }
    for (let count = 0; count < 20; count++) expect(one!.count(attempt)).toBe(0)
    expect([one!.count(attempt), other!.count(attempt)]).toEqual([3000, 0])
  })
})
