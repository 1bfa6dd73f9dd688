import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EntryChange } from '../config-store.ts'
import { decodeEntry, encodeEntry, encodeEntryKey, entryKeyOf } from './entry-encoding.ts'
import { blockOf, memberOf, overrideOf, removed } from './fake-feed.test.support.ts'

/** Texts that look like the syntax around them. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', ',{', 'u1,{', '",{"', ',{"', '"],[', '\\",{\\"', '\n', '\u2028', '*', '["override"', '\\'),
)

const rest = fc.record({ note: text, terms: fc.record({ limit: fc.nat() }) })

const changes: fc.Arbitrary<EntryChange> = fc
  .tuple(fc.constantFrom('override', 'member', 'block', 'api-key', 'incident'), text, text, text, rest)
  .map(([kind, first, second, third, more]) => {
    if (kind === 'incident') return { kind, entry: { active: true, ...more } } as EntryChange
    if (kind === 'api-key') return { kind, key: first, entry: { id: first, ...more } } as never
    const key = { dimension: first, entity: second, ...(kind === 'override' && { resource: third }) }
    return { kind, key, entry: { ...key, ...more } } as never
  })

describe('a line of the cache file', () => {
  it('gives back the entry it was made of (property)', () => {
    fc.assert(
      fc.property(changes, (change) => {
        const line = encodeEntry(change)!
        expect(line.indexOf('\n')).toBe(line.length - 1)
        expect(decodeEntry(line.trimEnd())).toEqual(change)
      }),
    )
  })

  it('begins as its entry does, whatever the key is made of (property)', () => {
    fc.assert(
      fc.property(changes, (change) => {
        expect(entryKeyOf(encodeEntry(change)!)).toBe(encodeEntryKey(change))
      }),
    )
  })

  it('begins otherwise for another entry (property)', () => {
    const identity = ({ entry, ...rest_ }: EntryChange): string => JSON.stringify(rest_)
    fc.assert(
      fc.property(changes, changes, (one, other) => {
        expect(encodeEntryKey(one) === encodeEntryKey(other)).toBe(identity(one) === identity(other))
      }),
    )
  })

  it('is short: the key stands there once', () => {
    expect(encodeEntry(overrideOf('u1', 5))).toBe('["override","user","u1","*",{"terms":{"limit":5}}]\n')
    expect(encodeEntry(memberOf('u1', 'gold'))).toBe('["member","user","u1",{"tier":"gold"}]\n')
    expect(encodeEntry(blockOf('10.0.0.1', 9))).toBe(
      '["block","ip","10.0.0.1",{"until":9,"strikes":1,"forgottenAt":10}]\n',
    )
    expect(encodeEntry({ kind: 'incident', entry: { active: true } })).toBe('["incident",{"active":true}]\n')
  })

  it('is not there for an entry that was removed', () => {
    expect(encodeEntry(removed(overrideOf('u1', 5)))).toBeUndefined()
    expect(encodeEntryKey(removed(overrideOf('u1', 5)))).toBe(encodeEntryKey(overrideOf('u1', 5)))
  })

  it('of a kind that is not known is nothing', () => {
    expect(decodeEntry('["quota","user","u1",{"limit":5}]')).toBeUndefined()
  })
})
