import { describe, expect, it } from 'vitest'
import { parseDocumentText } from './read-document.ts'

describe('parseDocumentText', () => {
  it('reads YAML and JSON', () => {
    expect(parseDocumentText('rules:\n  - { limit: 1, window: 1m }\n', 'a.yaml')).toEqual({
      rules: [{ limit: 1, window: '1m' }],
    })
    expect(parseDocumentText('{"rules":[{"limit":1}]}', 'a.json')).toEqual({ rules: [{ limit: 1 }] })
  })

  it('turns dates of instants into milliseconds, and nothing else', () => {
    expect(
      parseDocumentText('a: [{ expiresAt: 2027-01-01, note: 2027-01-01 }]\nuntil: 5\nexpiresAt: never\n', 'a.yaml'),
    ).toEqual({ a: [{ expiresAt: Date.UTC(2027, 0, 1), note: '2027-01-01' }], until: 5, expiresAt: 'never' })
  })

  it.each([
    ['a: [', /^a\.yaml: .*line 1/],
    ['a: 1\na: 2', /^a\.yaml: Map keys must be unique at line 2/],
    [`a: &a [1]\n${'b: [*a, *a]\n'.repeat(0)}c: *d`, /^a\.yaml: Unresolved alias/],
  ])('says where %j is wrong', (text, detail) => {
    expect(() => parseDocumentText(text, 'a.yaml')).toThrow(
      expect.objectContaining({ code: 'SLUICE_CLI_INVALID_FILE', detail: expect.stringMatching(detail) }),
    )
  })

  it('does not let a short file become a long one', () => {
    const levels = Array.from({ length: 20 }, (_, level) =>
      level === 0 ? 'l0: &l0 [1, 1]' : `l${level}: &l${level} [*l${level - 1}, *l${level - 1}]`,
    )
    expect(() => parseDocumentText(levels.join('\n'), 'a.yaml')).toThrow(/alias/i)
  })
})
