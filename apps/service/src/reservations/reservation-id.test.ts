import type { Rule } from '@sluice/core'
import { ALGORITHMS, compileRule } from '@sluice/core/internal'
import type { AlgorithmName } from '@sluice/testing'
import { keys, rules } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compactLimit, expandLimit, ReservationIds } from './reservation-id.ts'
import type { Ticket } from './reservation-ticket.ts'

const SECRET = new Uint8Array(32).fill(1)
const IDS = new ReservationIds(SECRET)

const anyRule: fc.Arbitrary<Rule> = fc.oneof(...(Object.keys(ALGORITHMS) as AlgorithmName[]).map((name) => rules(name)))

const anyTicket: fc.Arbitrary<Ticket> = fc
  .record({
    rule: anyRule,
    key: keys(),
    kind: fc.constantFrom('units', 'slot'),
    thread: fc.nat(63),
    failure: fc.constantFrom(undefined, 'open', 'local'),
    endsAtMs: fc.oneof(fc.double({ min: 0, max: 4e12, noNaN: true }), fc.constant(Number.POSITIVE_INFINITY)),
    leaseMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1e9 })),
    cost: fc.nat(1e9),
    holder: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    held: fc.boolean(),
    at: fc.nat(4e15),
    mark: fc.nat(),
  })
  .map(({ rule, key, cost, holder, held, at, mark, ...rest }) => {
    const charges = compileRule('/api/v1/data@user', rule).map((limit) => ({ limit, key, at, cost, mark }))
    return { ...rest, claim: { cost, receipt: { holder, held, leaseMicros: 0, charges } } }
  })

function idOf(ticket: Ticket): string {
  return IDS.write(ticket) ?? ''
}

const [USUAL] = fc.sample(
  anyTicket.filter((ticket) => idOf(ticket).length > 100),
  { numRuns: 1, seed: 1 },
) as [Ticket]

describe('a limit in short form', () => {
  it.each(Object.keys(ALGORITHMS) as AlgorithmName[])('property: is the same limit again (%s)', (algorithm) => {
    fc.assert(
      fc.property(rules(algorithm), fc.constantFrom('open', 'closed', 'local', undefined), (rule, failureMode) => {
        const modes = failureMode === undefined ? {} : { failureMode }
        for (const limit of compileRule('rule', { ...rule, ...modes } as Rule)) {
          const short = JSON.stringify(compactLimit(limit))
          expect(expandLimit(JSON.parse(short))).toEqual(limit)
          expect(short.length).toBeLessThan(JSON.stringify(limit).length)
        }
      }),
    )
  })
})

describe('a reservation id', () => {
  it('property: says what was written', () => {
    fc.assert(
      fc.property(anyTicket, (ticket) => {
        const id = idOf(ticket)
        fc.pre(id !== '')
        expect(IDS.read(id)).toEqual(ticket)
        expect(id).toMatch(/^[\w.-]+$/)
      }),
    )
  })

  it('is a few hundred characters long for a usual reservation', () => {
    const limits = compileRule('/api/v1/data@user', { limit: 100, window: '1m' })
    const charges = limits.map((limit) => ({ limit, key: 'user:user-123', at: 1.8e15, cost: 1, mark: 0 }))
    const receipt = { holder: 2 ** 52, held: true, leaseMicros: 0, charges }
    const ticket = { ...USUAL, endsAtMs: 1.8e12, leaseMs: 0, claim: { cost: 1, receipt } }
    expect(idOf(ticket).length).toBeLessThan(400)
    const many = Array.from({ length: 8 }, (_, index) => {
      const [limit] = compileRule(`/api/v1/data@dimension-${index}`, { limit: 100, window: '1m' })
      return { ...charges[0]!, limit: limit! }
    })
    expect(idOf({ ...ticket, claim: { cost: 1, receipt: { ...receipt, charges: many } } }).length).toBeLessThan(2000)
  })

  it('is not written when it would be longer than 8192 characters', () => {
    const charge = USUAL.claim.receipt.charges[0]!
    const withKey = (length: number): Ticket => {
      const receipt = { ...USUAL.claim.receipt, charges: [{ ...charge, key: 'k'.repeat(length) }] }
      return { ...USUAL, claim: { ...USUAL.claim, receipt } }
    }
    const longest = Array.from({ length: 6000 }, (_, length) => length).findLast(
      (length) => idOf(withKey(length)) !== '',
    )!
    expect(idOf(withKey(longest)).length).toBeGreaterThan(8190)
    expect(IDS.write(withKey(longest + 1))).toBeUndefined()
  })

  it('property: is worth nothing when anything in it was changed', () => {
    const id = idOf(USUAL)
    fc.assert(
      fc.property(fc.nat(id.length - 1), fc.constantFrom(...'AZaz09_-.r1= \n'), (place, character) => {
        fc.pre(id[place] !== character)
        expect(IDS.read(id.slice(0, place) + character + id.slice(place + 1))).toBeUndefined()
      }),
    )
  })

  it('property: is worth nothing when it is cut or added to', () => {
    const id = idOf(USUAL)
    fc.assert(
      fc.property(fc.nat(id.length - 1), fc.string({ minLength: 1 }), (length, more) => {
        expect(IDS.read(id.slice(0, length))).toBeUndefined()
        expect(IDS.read(id.slice(id.length - length))).toBeUndefined()
        expect(IDS.read(id + more)).toBeUndefined()
        expect(IDS.read(more + id)).toBeUndefined()
        expect(IDS.read(more)).toBeUndefined()
      }),
    )
  })

  it('is invalid with another secret, and uses the current bytes of the secret', () => {
    const secret = new Uint8Array(SECRET)
    const ids = new ReservationIds(secret)
    const before = ids.write(USUAL)!
    expect(IDS.read(before)).toEqual(USUAL)
    expect(new ReservationIds(new Uint8Array(32)).read(before)).toBeUndefined()
    secret.fill(2)
    expect(ids.read(before)).toBeUndefined()
    expect(ids.read(ids.write(USUAL)!)).toEqual(USUAL)
    expect(IDS.read(ids.write(USUAL)!)).toBeUndefined()
  })
})
