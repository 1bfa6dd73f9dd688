import type { EnvoyDecisionLike, ValidEnvoyRequest } from '@sluice/contract'
import { envoyAnswer } from '@sluice/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FRAME_PREFIX_BYTES, ProtobufError, ProtobufReader, ProtobufWriter } from './protobuf.ts'
import { hasDeclaredTypes, peerBytes, peerJson, peerMessage } from './protobuf-peer.test.support.ts'
import type { RateLimitResponseParts } from './rate-limit-messages.ts'
import { InvalidRequestError, readRateLimitRequest, writeRateLimitResponse } from './rate-limit-messages.ts'

const read = (bytes: Uint8Array): unknown => readRateLimitRequest(new ProtobufReader(Buffer.from(bytes)))

/** Any Unicode text, also longer than the fast path takes. */
const text = fc.string({ unit: 'binary', maxLength: 40 }).map((value) => value.toWellFormed())
const name = text.filter((value) => value !== '')
const uint32 = fc.oneof(fc.nat(300), fc.constantFrom(127, 128, 16_383, 16_384, 2_147_483_648, 4_294_967_295))

const descriptor = fc.record(
  {
    entries: fc.array(fc.record({ key: name, value: text }), { minLength: 1, maxLength: 4 }),
    limit: fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: 1, max: 7 }) }),
    hitsAddend: uint32.map((value) => ({ value: BigInt(value) })),
    isNegativeHits: fc.boolean(),
  },
  { requiredKeys: ['entries'] },
)

const request = fc.record(
  { domain: name, descriptors: fc.array(descriptor, { minLength: 1, maxLength: 5 }), hitsAddend: uint32 },
  { requiredKeys: ['domain', 'descriptors'] },
)

const UNITS = ['', 'second', 'minute', 'hour', 'day', 'month', 'year', 'week'] as const

/** What the listener must read: as the peer's, without what protobuf does not tell apart from nothing. */
function expected(value: Readonly<Record<string, unknown>>): object {
  const { domain, descriptors, hitsAddend } = value as unknown as Asked
  return {
    domain,
    ...(hitsAddend === 0 ? {} : { hitsAddend }),
    descriptors: descriptors.map(({ entries, limit, hitsAddend: hits, isNegativeHits }) => ({
      entries: entries.map((entry) => ({ key: entry.key, value: entry.value })),
      ...(limit && { limit: { unit: UNITS[limit.unit], requestsPerUnit: limit.requestsPerUnit } }),
      ...(hits && { hitsAddend: Number(hits.value) }),
      ...(isNegativeHits && { isNegativeHits }),
    })),
  }
}

interface Asked {
  readonly domain: string
  readonly hitsAddend: number
  readonly descriptors: readonly {
    readonly entries: readonly { readonly key: string; readonly value: string }[]
    readonly limit?: { readonly unit: number; readonly requestsPerUnit: number }
    readonly hitsAddend?: { readonly value: bigint }
    readonly isNegativeHits: boolean
  }[]
}

/** A field that no message has, of any wire type. */
const unknownField = fc.constantFrom(
  [0x78, 0x80, 0x01],
  [0x79, 1, 2, 3, 4, 5, 6, 7, 8],
  [0x7a, 2, 0xff, 0xff],
  [0x7b, 0x08, 0x01, 0x7c],
  [0x7b, 0x7b, 0x7c, 0x7c],
  [0x7d, 1, 2, 3, 4],
  // The domain, and the hits, as other types.
  [0x08, 1],
  [0x1a, 1, 1],
  [0xfa, 0xff, 0xff, 0xff, 0x0f, 1, 7],
)

describe('a request', () => {
  it('is read as @bufbuild/protobuf reads it (property)', () => {
    fc.assert(
      fc.property(request, (value) => {
        const bytes = peerBytes('RateLimitRequest', value)
        expect(read(bytes)).toEqual(expected(peerMessage('RateLimitRequest', bytes)))
      }),
    )
  })

  it('may have unknown fields and come in parts (property)', () => {
    fc.assert(
      fc.property(request, fc.array(unknownField), (value, unknown) => {
        const { descriptors, ...rest } = value
        const parts = descriptors.map((each) => peerBytes('RateLimitRequest', { descriptors: [each] }))
        const bytes = Buffer.concat([
          ...parts.flatMap((part, index) => [Buffer.from(unknown[index] ?? []), part]),
          Buffer.from(unknown.at(-1) ?? []),
          peerBytes('RateLimitRequest', { ...rest, domain: 'another' }),
          peerBytes('RateLimitRequest', rest),
        ])
        expect(read(bytes)).toEqual(expected(peerMessage('RateLimitRequest', peerBytes('RateLimitRequest', value))))
      }),
    )
  })

  it('joins the parts of a limit and of hits', () => {
    const entry = [0x0a, 3, 0x0a, 1, 0x61]
    const limits = [0x12, 2, 0x08, 5, 0x12, 2, 0x10, 2]
    const hits = [0x1a, 2, 0x08, 9, 0x1a, 0]
    const one = [...entry, ...limits, ...hits]
    const bytes = Buffer.from([0x0a, 1, 0x64, 0x12, one.length, ...one])
    const limit = { unit: 'minute', requestsPerUnit: 5 }
    const descriptors = [{ entries: [{ key: 'a', value: '' }], limit, hitsAddend: 9 }]
    expect(read(bytes)).toEqual({ domain: 'd', descriptors })
    expect(peerMessage('RateLimitRequest', bytes)['descriptors']).toMatchObject([
      { limit: { unit: 2, requestsPerUnit: 5 }, hitsAddend: { value: 9n } },
    ])
  })

  it('of changed bytes is read as the peer reads it, or rejected (property)', () => {
    const change = fc.record({ at: fc.nat(), to: fc.nat(255) })
    const changed = fc.tuple(request, fc.array(change, { maxLength: 4 }), fc.nat()).map(([value, changes, cut]) => {
      const bytes = peerBytes('RateLimitRequest', value)
      for (const { at, to } of changes) bytes[at % bytes.length] = to
      return bytes.subarray(0, cut % 3 === 0 ? cut % (bytes.length + 1) : bytes.length)
    })
    fc.assert(
      fc.property(fc.oneof(changed, fc.uint8Array({ maxLength: 60 })), (bytes) => {
        let mine: unknown
        try {
          mine = read(bytes)
        } catch (error) {
          expect(error instanceof ProtobufError || error instanceof InvalidRequestError).toBe(true)
          return
        }
        fc.pre(hasDeclaredTypes('RateLimitRequest', bytes))
        expect(mine).toEqual(expected(peerMessage('RateLimitRequest', bytes)))
      }),
      { numRuns: 2000 },
    )
  })

  it.each<[string, readonly number[]]>([
    ['a tag of field 0', [0x00, 1]],
    ['a number that never ends', [0x18, ...Array<number>(10).fill(0xff), 1]],
    ['a number that is cut off', [0x18, 0x80]],
    ['a length beyond the end', [0x0a, 5, 0x61]],
    ['a length of 4 GB', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a length of 64 bits', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ['a string that is no UTF-8', [0x0a, 1, 0xff]],
    ['a fixed number that is cut off', [0x79, 1, 2]],
    ['a group that ends as another', [0x7b, 0x0c]],
    ['an end without a group', [0x7c]],
    ['a wire type that does not exist', [0x7e]],
    ['groups without end', Array<number>(100_000).fill(0x7b)],
    ['a message within that is longer than the one around', [0x12, 4, 0x0a, 50, 0x0a, 1]],
  ])('is no message: %s', (_, bytes) => {
    expect(() => read(Buffer.from(bytes))).toThrow(ProtobufError)
  })

  const entries = [{ key: 'secret-key', value: 'secret-value' }]
  const many = (count: number, one: object): object[] => Array.from({ length: count }, () => one)

  it.each<[string, object, RegExp]>([
    ['no domain', { descriptors: [{ entries }] }, /^domain: /],
    ['no descriptors', { domain: 'shop' }, /^descriptors: /],
    ['101 descriptors', { domain: 'shop', descriptors: many(101, { entries }) }, /^descriptors: more than 100/],
    ['no entries', { domain: 'shop', descriptors: [{}] }, /^descriptors\[0\]\.entries: /],
    ['33 entries', { domain: 'shop', descriptors: [{ entries: many(33, { key: 'k' }) }] }, /entries: more than 32/],
    ['an empty key', { domain: 'shop', descriptors: [{ entries: [{ value: 'secret-value' }] }] }, /empty key/],
    [
      'no unit',
      { domain: 'shop', descriptors: [{ entries, limit: { requestsPerUnit: 1 } }] },
      /limit\.unit: received 0/,
    ],
    ['unit 8', { domain: 'shop', descriptors: [{ entries, limit: { unit: 8 } }] }, /limit\.unit: received 8/],
    [
      'too many hits',
      { domain: 'shop', descriptors: [{ entries, hitsAddend: { value: 4_294_967_296n } }] },
      /hits_addend: received more than 4294967295/,
    ],
    [
      'hits of 64 bits',
      { domain: 'shop', descriptors: [{ entries, hitsAddend: { value: 2n ** 64n - 1n } }] },
      /hits_addend/,
    ],
  ])('cannot be decided: %s', (_, value, message) => {
    const reading = (): unknown => read(peerBytes('RateLimitRequest', value))
    expect(reading).toThrow(InvalidRequestError)
    expect(reading).toThrow(message)
    expect(reading).not.toThrow(/secret/)
  })
})

/** The peer cannot show a member of this name in JSON. */
function hasNoPrototypeName(value: object): boolean {
  return !JSON.stringify(value).includes('__proto__')
}

const unit = fc.constantFrom('second', 'minute', 'hour', 'day', 'month', 'year', 'week')
const status = fc.record({
  code: fc.constantFrom('ok', 'over'),
  limit: fc.option(fc.record({ requestsPerUnit: uint32, unit, name: fc.option(text, { nil: undefined }) }), {
    nil: undefined,
  }),
  remaining: fc.option(uint32),
  resetAfterSeconds: uint32,
})
const decision = fc.record({
  code: fc.constantFrom('ok', 'over'),
  statuses: fc.array(status, { maxLength: 8 }),
  metadata: fc.option(fc.dictionary(name, fc.jsonValue(), { noNullPrototype: true }).filter(hasNoPrototypeName), {
    nil: undefined,
  }),
})
const asked: ValidEnvoyRequest = {
  domain: 'shop',
  descriptors: [{ entries: [{ key: 'a', value: '' }] }],
  hitsAddend: 3,
}
const headers = fc.dictionary(name, text, { maxKeys: 4, noNullPrototype: true })

describe('an answer', () => {
  it('is what POST /json answers, in bytes that @bufbuild/protobuf reads (property)', () => {
    const writer = new ProtobufWriter(16)
    fc.assert(
      fc.property(decision, headers, (told, added) => {
        const answer = envoyAnswer(told as EnvoyDecisionLike, asked)
        const { dynamicMetadata } = answer
        const parts = { headers: added, dynamicMetadata: dynamicMetadata as RateLimitResponseParts['dynamicMetadata'] }
        writeRateLimitResponse(writer, told as EnvoyDecisionLike, parts)
        const frame = writer.takeFrame()
        expect([frame[0], frame.readUInt32BE(1)]).toEqual([0, frame.length - FRAME_PREFIX_BYTES])
        const bytes = frame.subarray(FRAME_PREFIX_BYTES)
        const { responseHeadersToAdd } = peerMessage('RateLimitResponse', bytes) as {
          readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
        }
        expect(responseHeadersToAdd.map(({ key, value }) => [key, value])).toEqual(Object.entries(added))
        const { responseHeadersToAdd: _, ...json } = peerJson('RateLimitResponse', bytes) as Record<string, unknown>
        const { statuses, ...rest } = JSON.parse(JSON.stringify(answer))
        expect(json).toEqual({ ...rest, ...(statuses.length > 0 && { statuses: statuses.map(withDuration) }) })
      }),
    )
  })
})

/** The peer's Duration is a plain message, which JSON has as an object. */
function withDuration({ durationUntilReset, ...rest }: { readonly durationUntilReset?: string }): object {
  if (durationUntilReset === undefined) return rest
  const seconds = durationUntilReset.slice(0, -1)
  return { ...rest, durationUntilReset: seconds === '0' ? {} : { seconds } }
}
