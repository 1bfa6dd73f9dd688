import type { EnvoyDecisionLike, EnvoyUnit, ValidEnvoyDescriptor, ValidEnvoyRequest } from '@sluice/contract'
import { LARGEST_ENVOY_COUNT, MOST_ENVOY_DESCRIPTORS, MOST_ENVOY_ENTRIES } from '@sluice/contract'
import type { ProtobufReader, ProtobufWriter } from './protobuf.ts'
import { tagOf, WIRE_TYPE } from './protobuf.ts'

// RateLimitRequest and RateLimitResponse of envoy.service.ratelimit.v3, by field number.

/** A message that is valid protobuf, but no request that can be decided. `message` says what is wrong with it. */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError'
}

/** A descriptor while it is read. */
type DescriptorDraft = { -readonly [Name in keyof ValidEnvoyDescriptor]: ValidEnvoyDescriptor[Name] } & {
  entries: ValidEnvoyDescriptor['entries'][number][]
}

/** The fields of `limit` while they are read: a message within may come in parts. */
interface LimitDraft {
  unit: number
  requestsPerUnit: number
}

const bytesTag = (field: number): number => tagOf(field, WIRE_TYPE.bytes)
const varintTag = (field: number): number => tagOf(field, WIRE_TYPE.varint)

const REQUEST = { domain: bytesTag(1), descriptors: bytesTag(2), hitsAddend: varintTag(3) }
const DESCRIPTOR = {
  entries: bytesTag(1),
  limit: bytesTag(2),
  hitsAddend: bytesTag(3),
  isNegativeHits: varintTag(4),
}
const ENTRY = { key: bytesTag(1), value: bytesTag(2) }
const LIMIT = { requestsPerUnit: varintTag(1), unit: varintTag(2) }
const UINT64_VALUE = { value: varintTag(1) }

/** By the numbers of `envoy.type.v3.RateLimitUnit`; 0 is unknown. */
const UNITS: readonly (Lowercase<EnvoyUnit> | undefined)[] = [
  undefined,
  'second',
  'minute',
  'hour',
  'day',
  'month',
  'year',
  'week',
]

/**
 * Reads a request: throws `ProtobufError` where the bytes are no message, {@link InvalidRequestError} where the message
 * cannot be decided or is beyond the bounds of `POST /json`. Unknown fields are ignored.
 */
export function readRateLimitRequest(reader: ProtobufReader): ValidEnvoyRequest {
  let domain = ''
  let hitsAddend: number | undefined
  const descriptors: ValidEnvoyDescriptor[] = []
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === REQUEST.descriptors) {
      if (descriptors.length === MOST_ENVOY_DESCRIPTORS)
        throw new InvalidRequestError(`descriptors: more than ${MOST_ENVOY_DESCRIPTORS}; send fewer in one request`)
      descriptors.push(readDescriptor(reader, descriptors.length))
    } else if (tag === REQUEST.domain) domain = reader.string()
    else if (tag === REQUEST.hitsAddend) hitsAddend = reader.uint32()
    else reader.skip(tag)
  }
  if (domain === '') throw new InvalidRequestError('domain: received nothing, expected the name of a domain')
  if (descriptors.length === 0) throw new InvalidRequestError('descriptors: received none, expected at least one')
  return hitsAddend === undefined ? { domain, descriptors } : { domain, descriptors, hitsAddend }
}

function readDescriptor(reader: ProtobufReader, index: number): ValidEnvoyDescriptor {
  const descriptor: DescriptorDraft = { entries: [] }
  let limit: LimitDraft | undefined
  const outer = reader.enter()
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === DESCRIPTOR.entries) {
      if (descriptor.entries.length === MOST_ENVOY_ENTRIES)
        throw new InvalidRequestError(`descriptors[${index}].entries: more than ${MOST_ENVOY_ENTRIES}`)
      descriptor.entries.push(readEntry(reader))
    } else if (tag === DESCRIPTOR.limit) {
      limit ??= { unit: 0, requestsPerUnit: 0 }
      readLimit(reader, limit)
    } else if (tag === DESCRIPTOR.hitsAddend) descriptor.hitsAddend = readUint64Value(reader, descriptor.hitsAddend)
    else if (tag === DESCRIPTOR.isNegativeHits) descriptor.isNegativeHits = reader.bool()
    else reader.skip(tag)
  }
  reader.leave(outer)
  if (limit !== undefined) descriptor.limit = validLimit(limit, index)
  checkDescriptor(descriptor, index)
  return descriptor
}

function readEntry(reader: ProtobufReader): ValidEnvoyDescriptor['entries'][number] {
  let key = ''
  let value = ''
  const outer = reader.enter()
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === ENTRY.key) key = reader.string()
    else if (tag === ENTRY.value) value = reader.string()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { key, value }
}

function readLimit(reader: ProtobufReader, limit: LimitDraft): void {
  const outer = reader.enter()
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === LIMIT.requestsPerUnit) limit.requestsPerUnit = reader.uint32()
    else if (tag === LIMIT.unit) limit.unit = reader.uint32()
    else reader.skip(tag)
  }
  reader.leave(outer)
}

/** `before`: the value of an earlier part of the same message. */
function readUint64Value(reader: ProtobufReader, before = 0): number {
  let value = before
  const outer = reader.enter()
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === UINT64_VALUE.value) value = reader.uint64()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return value
}

function validLimit({ unit: number, requestsPerUnit }: LimitDraft, index: number): ValidEnvoyDescriptor['limit'] & {} {
  const unit = UNITS[number]
  if (unit !== undefined) return { unit, requestsPerUnit }
  throw new InvalidRequestError(
    `descriptors[${index}].limit.unit: received ${number}, expected 1 to ${UNITS.length - 1}`,
  )
}

function checkDescriptor({ entries, hitsAddend = 0 }: ValidEnvoyDescriptor, index: number): void {
  const place = `descriptors[${index}]`
  if (entries.length === 0) throw new InvalidRequestError(`${place}.entries: received none, expected at least one`)
  // Values may name somebody or be a secret: they are never repeated.
  if (entries.some(({ key }) => key === ''))
    throw new InvalidRequestError(`${place}.entries: received an empty key, expected a name`)
  if (hitsAddend > LARGEST_ENVOY_COUNT)
    throw new InvalidRequestError(`${place}.hits_addend: received more than ${LARGEST_ENVOY_COUNT}`)
}

/** Numbers of `RateLimitResponse.Code`. UNKNOWN (0) is never sent: Envoy would take it for OK. */
const CODES = { ok: 1, over: 2 } as const

const UNIT_NUMBERS: ReadonlyMap<string | undefined, number> = new Map(UNITS.map((unit, number) => [unit, number]))

/** What an answer has beside the decision. */
export interface RateLimitResponseParts {
  /** For the response to the client of the proxy. */
  readonly headers: Readonly<Record<string, string>>
  /** For the next filters of the proxy. */
  readonly dynamicMetadata: Readonly<Record<string, unknown>> | undefined
}

/** Writes the answer that tells `decision`. */
export function writeRateLimitResponse(
  writer: ProtobufWriter,
  decision: EnvoyDecisionLike,
  { headers, dynamicMetadata }: RateLimitResponseParts,
): void {
  writer.number(1, CODES[decision.code])
  for (let index = 0; index < decision.statuses.length; index++) {
    const start = writer.begin(2)
    writeStatus(writer, decision.statuses[index]!)
    writer.end(start)
  }
  for (const key in headers) {
    const start = writer.begin(3)
    writer.string(1, key)
    writer.string(2, headers[key]!)
    writer.end(start)
  }
  if (dynamicMetadata === undefined) return
  const start = writer.begin(6)
  writeStruct(writer, dynamicMetadata)
  writer.end(start)
}

/** Writes the fields of a `google.protobuf.Struct`. */
function writeStruct(writer: ProtobufWriter, fields: object): void {
  for (const [name, value] of Object.entries(fields)) {
    const start = writer.begin(1)
    writer.string(1, name)
    writeField(writer, 2, value)
    writer.end(start)
  }
}

/** Writes a value of JSON as a field that is a `google.protobuf.Value`: always one of its kinds, also for 0 and ''. */
function writeField(writer: ProtobufWriter, field: number, value: unknown): void {
  const start = writer.begin(field)
  if (typeof value === 'number') writer.double(2, value)
  else if (typeof value === 'boolean') writer.flag(4, value)
  else if (typeof value === 'object' && value !== null) {
    const inner = writer.begin(Array.isArray(value) ? 6 : 5)
    if (Array.isArray(value)) for (const item of value as readonly unknown[]) writeField(writer, 1, item)
    else writeStruct(writer, value)
    writer.end(inner)
  } else if (typeof value === 'string' && value !== '') writer.string(3, value)
  else if (value === '') writer.end(writer.begin(3))
  else writer.flag(1, false)
  writer.end(start)
}

function writeStatus(writer: ProtobufWriter, status: EnvoyDecisionLike['statuses'][number]): void {
  const { code, limit, remaining, resetAfterSeconds } = status
  writer.number(1, CODES[code])
  // The protocol cannot say "unknown": without a limit, Envoy announces none. A limit alone would read as 0 left.
  if (remaining === null) return
  if (limit !== undefined) {
    const start = writer.begin(2)
    writer.number(1, limit.requestsPerUnit)
    writer.number(2, UNIT_NUMBERS.get(limit.unit) ?? 0)
    writer.string(3, limit.name ?? '')
    writer.end(start)
  }
  writer.number(3, remaining)
  if (limit === undefined) return
  const start = writer.begin(4)
  writer.number(1, resetAfterSeconds)
  writer.end(start)
}
