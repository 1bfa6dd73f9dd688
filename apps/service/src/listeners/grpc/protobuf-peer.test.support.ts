import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf'
import { create, createFileRegistry, fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import type { FileDescriptorProto } from '@bufbuild/protobuf/wkt'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_struct,
} from '@bufbuild/protobuf/wkt'

// The messages of the listener, as @bufbuild/protobuf reads and writes them. Field numbers are those of the .proto
// files of Envoy and gRPC; packages and unused messages are left out, because they are not part of the bytes.

const { STRING, UINT32, UINT64, INT64, BOOL, ENUM, MESSAGE } = FieldDescriptorProto_Type

const STRUCT = 'google.protobuf.Struct'

type FieldParts = readonly [name: string, number: number, type: FieldDescriptorProto_Type, of?: string]

const MESSAGES: Readonly<Record<string, readonly FieldParts[]>> = {
  Entry: [
    ['key', 1, STRING],
    ['value', 2, STRING],
  ],
  RateLimitOverride: [
    ['requests_per_unit', 1, UINT32],
    ['unit', 2, ENUM, 'Unit'],
  ],
  UInt64Value: [['value', 1, UINT64]],
  RateLimitDescriptor: [
    ['entries', 1, MESSAGE, 'Entry[]'],
    ['limit', 2, MESSAGE, 'RateLimitOverride'],
    ['hits_addend', 3, MESSAGE, 'UInt64Value'],
    ['is_negative_hits', 4, BOOL],
  ],
  RateLimitRequest: [
    ['domain', 1, STRING],
    ['descriptors', 2, MESSAGE, 'RateLimitDescriptor[]'],
    ['hits_addend', 3, UINT32],
  ],
  RateLimit: [
    ['requests_per_unit', 1, UINT32],
    ['unit', 2, ENUM, 'Unit'],
    ['name', 3, STRING],
  ],
  Duration: [
    ['seconds', 1, INT64],
    ['nanos', 2, UINT32],
  ],
  DescriptorStatus: [
    ['code', 1, ENUM, 'Code'],
    ['current_limit', 2, MESSAGE, 'RateLimit'],
    ['limit_remaining', 3, UINT32],
    ['duration_until_reset', 4, MESSAGE, 'Duration'],
  ],
  HeaderValue: [
    ['key', 1, STRING],
    ['value', 2, STRING],
  ],
  RateLimitResponse: [
    ['overall_code', 1, ENUM, 'Code'],
    ['statuses', 2, MESSAGE, 'DescriptorStatus[]'],
    ['response_headers_to_add', 3, MESSAGE, 'HeaderValue[]'],
    ['dynamic_metadata', 6, MESSAGE, STRUCT],
  ],
  HealthCheckRequest: [['service', 1, STRING]],
  HealthCheckResponse: [['status', 1, ENUM, 'ServingStatus']],
}

const ENUMS: Readonly<Record<string, readonly string[]>> = {
  Unit: ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'],
  Code: ['UNKNOWN', 'OK', 'OVER_LIMIT'],
  ServingStatus: ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'],
}

function fileOf(): FileDescriptorProto {
  const init: MessageInitShape<typeof FileDescriptorProtoSchema> = {
    name: 'peer.proto',
    package: 'peer',
    syntax: 'proto3',
    dependency: [file_google_protobuf_struct.proto.name],
    messageType: Object.entries(MESSAGES).map(([name, fields]) => ({
      name,
      field: fields.map(([field, number, type, of = '']) => ({
        name: field,
        jsonName: field.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
        number,
        type,
        label: of.endsWith('[]') ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
        typeName: of === '' ? '' : `.${of === STRUCT ? '' : 'peer.'}${of.replace('[]', '')}`,
      })),
    })),
    enumType: Object.entries(ENUMS).map(([name, values]) => ({
      name,
      value: values.map((value, number) => ({ name: `${name}_${value}`, number })),
    })),
  }
  return create(FileDescriptorProtoSchema, init)
}

const REGISTRY = createFileRegistry(
  create(FileDescriptorSetSchema, { file: [file_google_protobuf_struct.proto, fileOf()] }),
)

/** The name of a message of the peer. */
export type PeerMessage = keyof typeof MESSAGES

function schemaOf(name: PeerMessage): DescMessage {
  const schema = REGISTRY.getMessage(`peer.${name}`)
  if (schema === undefined) throw new Error(`There is no message ${name}.`)
  return schema
}

/** The bytes of a message; names of fields in camel case, numbers of 64 bits as bigint. */
export function peerBytes(name: PeerMessage, value: object): Buffer {
  return Buffer.from(toBinary(schemaOf(name), create(schemaOf(name), value as Record<string, unknown>)))
}

/** The message of these bytes. Throws where they are none. */
export function peerMessage(name: PeerMessage, bytes: Uint8Array): Readonly<Record<string, unknown>> {
  return fromBinary(schemaOf(name), bytes) as unknown as Readonly<Record<string, unknown>>
}

/** Whether all known fields have the wire type that is declared. The peer misreads others; protobuf skips them. */
export function hasDeclaredTypes(name: PeerMessage, bytes: Uint8Array): boolean {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    const [, , type, of = ''] = MESSAGES[name]?.find((field) => field[1] === number) ?? []
    const declared = type === STRING || type === MESSAGE ? WireType.LengthDelimited : WireType.Varint
    if (type !== undefined && wireType !== declared) return false
    if (type !== MESSAGE) reader.skip(wireType, number)
    else if (!hasDeclaredTypes(of.replace('[]', ''), reader.bytes())) return false
  }
  return true
}

/** The message of these bytes as the JSON of protobuf, with enumerations by their names. */
export function peerJson(name: PeerMessage, bytes: Uint8Array): unknown {
  const json = toJson(schemaOf(name), fromBinary(schemaOf(name), bytes))
  return JSON.parse(JSON.stringify(json).replaceAll(/"(?:Unit|Code|ServingStatus)_/g, '"'))
}
