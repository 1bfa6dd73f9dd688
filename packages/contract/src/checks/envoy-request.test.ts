import { describe, expect, it } from 'vitest'
import { MOST_ENVOY_DESCRIPTORS, MOST_ENVOY_ENTRIES, parseEnvoyRequest } from './envoy-request.ts'

const ENTRY = { key: 'user', value: 'ann' }
const REQUEST = { domain: 'shop', descriptors: [{ entries: [ENTRY] }] }

function wrongPlaces(body: unknown): readonly string[] {
  const parsed = parseEnvoyRequest(body)
  return parsed.ok ? [] : parsed.problems.map(({ path }) => path)
}

describe('a request of the Envoy protocol', () => {
  it('is read as protobuf JSON: names in either form, numbers also as strings, missing is 0 or empty', () => {
    const limit = { requests_per_unit: '10', unit: 'MINUTE' }
    const entries = [{ key: 'user' }, ENTRY]
    const descriptors = [
      { entries, limit, hits_addend: '0' },
      { entries, limit: { unit: 'DAY' }, hitsAddend: 7, is_negative_hits: true },
    ]
    expect(parseEnvoyRequest({ domain: 'shop', descriptors, hits_addend: 4_294_967_295 })).toEqual({
      ok: true,
      request: {
        domain: 'shop',
        descriptors: [
          {
            entries: [{ key: 'user', value: '' }, ENTRY],
            limit: { requestsPerUnit: 10, unit: 'minute' },
            hitsAddend: 0,
          },
          {
            entries: [{ key: 'user', value: '' }, ENTRY],
            limit: { requestsPerUnit: 0, unit: 'day' },
            hitsAddend: 7,
            isNegativeHits: true,
          },
        ],
        hitsAddend: 4_294_967_295,
      },
    })
  })

  it('takes values of any length and of any characters that have a UTF-8 form', () => {
    const value = `\u0000\n${'x'.repeat(100_000)}`
    expect(parseEnvoyRequest({ ...REQUEST, descriptors: [{ entries: [{ key: 'k', value }] }] }).ok).toBe(true)
    expect(wrongPlaces({ ...REQUEST, descriptors: [{ entries: [{ key: 'k', value: '\ud800' }] }] })).toEqual([
      '/descriptors/0/entries/0/value',
    ])
  })

  it.each<[unknown, readonly string[]]>([
    [null, ['']],
    [[REQUEST], ['']],
    [{}, ['/domain', '/descriptors']],
    [{ ...REQUEST, domain: '' }, ['/domain']],
    [{ ...REQUEST, descriptors: [] }, ['/descriptors']],
    [{ ...REQUEST, descriptors: [7, {}] }, ['/descriptors/0', '/descriptors/1/entries']],
    [{ ...REQUEST, descriptors: [{ entries: [{ value: 'x' }] }] }, ['/descriptors/0/entries/0/key']],
    [{ ...REQUEST, descriptors: [{ entries: [{ key: '' }] }] }, ['/descriptors/0/entries/0/key']],
    [{ ...REQUEST, descriptors: [{ entries: ENTRY }] }, ['/descriptors/0/entries']],
    [{ ...REQUEST, descriptors: [{ entries: [ENTRY], limit: 5 }] }, ['/descriptors/0/limit']],
    [{ ...REQUEST, descriptors: [{ entries: [ENTRY], limit: { unit: 'minute' } }] }, ['/descriptors/0/limit/unit']],
    [{ ...REQUEST, hitsAddend: 1.5 }, ['/hitsAddend']],
    [{ ...REQUEST, hitsAddend: 4_294_967_296 }, ['/hitsAddend']],
    [{ ...REQUEST, hitsAddend: '4294967296' }, ['/hitsAddend']],
    [{ ...REQUEST, hitsAddend: '-1' }, ['/hitsAddend']],
    [{ ...REQUEST, hits: 1 }, ['/hits']],
    [{ ...REQUEST, descriptors: [{ entries: [{ ...ENTRY, kind: 1 }] }] }, ['/descriptors/0/entries/0/kind']],
  ])('is not %j', (body, places) => {
    expect(wrongPlaces(body)).toEqual(places)
  })

  it('has each field under one of its names', () => {
    const limit = { unit: 'DAY', requestsPerUnit: 1, requests_per_unit: 1 }
    const descriptors = [
      { entries: [ENTRY], limit, hitsAddend: 1, hits_addend: 1, isNegativeHits: true, is_negative_hits: true },
    ]
    expect(parseEnvoyRequest({ domain: 'shop', descriptors, hitsAddend: 1, hits_addend: 1 })).toEqual({
      ok: false,
      problems: [
        '/hits_addend',
        '/descriptors/0/hits_addend',
        '/descriptors/0/is_negative_hits',
        '/descriptors/0/limit/requests_per_unit',
      ].map((path) => ({
        path,
        received: expect.stringMatching(/^it beside "/),
        expected: 'one of them: they are one field',
      })),
      unlisted: 0,
    })
  })

  it('is bounded, and what is wrong with it is listed as far as it fits', () => {
    const many = (count: number, one: unknown): object => ({
      ...REQUEST,
      descriptors: Array.from({ length: count }, () => one),
    })
    expect(parseEnvoyRequest(many(MOST_ENVOY_DESCRIPTORS, { entries: [ENTRY] })).ok).toBe(true)
    expect(wrongPlaces(many(MOST_ENVOY_DESCRIPTORS + 1, { entries: [ENTRY] }))).toEqual(['/descriptors'])
    const entries = Array.from({ length: MOST_ENVOY_ENTRIES + 1 }, () => ENTRY)
    expect(wrongPlaces(many(1, { entries }))).toEqual(['/descriptors/0/entries'])
    expect(parseEnvoyRequest(many(1, { entries: entries.slice(1) })).ok).toBe(true)
    expect(parseEnvoyRequest(many(MOST_ENVOY_DESCRIPTORS, {}))).toMatchObject({ ok: false, unlisted: 36 })
  })

  it('never repeats a value, which may be a key', () => {
    const refused = parseEnvoyRequest({
      ...REQUEST,
      descriptors: [{ entries: [{ key: 'api_key', value: ['secret'] }] }, 7],
    })
    expect(JSON.stringify(refused)).not.toContain('secret')
    const broken = parseEnvoyRequest({ ...REQUEST, descriptors: [{ entries: [{ key: 'k', value: 'secret\ud800' }] }] })
    expect(JSON.stringify(broken)).not.toContain('secret')
  })
})
