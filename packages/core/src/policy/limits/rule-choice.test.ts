import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PolicyRule } from '../rule-set/rule-set.ts'
import { Snapshot } from '../snapshot.ts'
import type { CompiledRule } from './compiled-rule.ts'
import { DimensionReaders } from './dimension-reader.ts'
import type { RuleLine } from './rule-choice.ts'
import { holdingRules, RuleChoice, replacementOf, rulesFor } from './rule-choice.ts'

const OPTIONS = { readers: new DimensionReaders({ ipv6PrefixLength: 64 }), costFunctions: {}, version: 0 }

type Trait = Pick<PolicyRule, 'shadow' | 'percent' | 'always' | 'dimension'>

/** Rules with these traits, in their order. */
function compiled(traits: readonly Partial<Trait>[]): readonly CompiledRule[] {
  const rules = traits.map(
    (trait, index) =>
      ({ name: `r${index}`, resource: `/${index}`, dimension: 'user', limit: 1, window: '1m', ...trait }) as PolicyRule,
  )
  return new Snapshot({ rules }, OPTIONS).allRules
}

function requestOf(user: string): { resource: string; user: string; tenant: string } {
  return { resource: '/', user, tenant: user }
}

describe('the rules that hold', () => {
  it('are one, or a list, where they are the same for all callers', () => {
    const [enforced, replaced] = compiled([{}, {}]) as [CompiledRule, CompiledRule]
    expect(holdingRules([[enforced, replaced]])).toBe(enforced)
    const [watched, behind, hidden] = compiled([{ shadow: true }, {}, { percent: 10 }])
    expect(holdingRules([[watched!, behind!, hidden!]])).toEqual([watched, behind])
    const [last] = compiled([{ percent: 10 }])
    expect(holdingRules([[last!]])).toBe(last)
    expect(holdingRules([[]])).toEqual([])
  })

  it('are a choice only where a rule gives way for some', () => {
    const [share, behind] = compiled([{ percent: 10 }, {}]) as [CompiledRule, CompiledRule]
    const choice = holdingRules([[share, behind]])
    expect(choice).toBeInstanceOf(RuleChoice)
    // In another reading it gives way to no rule, so it holds for all callers.
    expect(holdingRules([[share, behind], [behind]])).toEqual([share, behind])
  })

  it('are all that could be, for a request without a caller', () => {
    const lines = [compiled([{ percent: 10 }, {}])]
    expect(rulesFor(holdingRules(lines), { resource: '/' })).toEqual(lines[0])
  })

  it('are, in each line and dimension, the first that is enforced for the caller and those before it', () => {
    const trait: fc.Arbitrary<Trait> = fc.record({
      dimension: fc.constantFrom('user', 'tenant', 'tenant+user', 'user+tenant'),
      shadow: fc.constantFrom(false, false, true),
      percent: fc.constantFrom(100, 100, 0, 10, 50, 90),
      always: fc.constantFrom(false, false, false, true),
    })
    const lineOf = fc.uniqueArray(fc.nat(9), { maxLength: 10 })
    fc.assert(
      fc.property(
        fc.array(trait, { minLength: 10, maxLength: 10 }),
        fc.array(lineOf, { minLength: 1, maxLength: 3 }),
        fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 }),
        (traits, places, users) => {
          const rules = compiled(traits)
          const lines = places.map((line) => line.map((index) => rules[index]!))
          const holding = holdingRules(lines)
          for (const user of users) {
            const request = requestOf(user)
            const held = new Set(rulesFor(holding, request))
            expect(held).toEqual(new Set(lines.flatMap((line) => heldIn(line, request))))
            for (const rule of lines.flat()) {
              const other = replacementOf(rule, lines, request)
              if (held.has(rule)) continue
              expect(other).toSatisfy((one: CompiledRule) => held.has(one) && isEnforced(one, request))
            }
          }
        },
      ),
    )
  })
})

function isEnforced(rule: CompiledRule, request: ReturnType<typeof requestOf>): boolean {
  return rule.isEnforcedFor(rule.reader.read(request)!)
}

/** What holds in one line, said as plainly as possible. */
function heldIn(line: RuleLine, request: ReturnType<typeof requestOf>): readonly CompiledRule[] {
  return line.filter((rule, index) => {
    const rivals = line.slice(0, index).filter((other) => other.reader.dimension === rule.reader.dimension)
    return (
      rule.rule.always === true || !rivals.some((other) => other.rule.always !== true && isEnforced(other, request))
    )
  })
}
