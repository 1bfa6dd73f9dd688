/** What happens to a header of an upstream: it passes, or one of the others. */
const PASS = 0
export const REMOVE = 1
export const CONNECTION = 2
export const CONTENT_LENGTH = 3
export const TRAILER = 4
export const GRPC_STATUS = 5
/** Tells one number, so that there can be only one set of these. */
export const LEGACY_LIMIT = 6

/** Names in lower case. */
const ACTIONS: ReadonlyMap<string, number> = new Map([
  ['connection', CONNECTION],
  ['keep-alive', REMOVE],
  ['proxy-connection', REMOVE],
  ['proxy-authenticate', REMOVE],
  ['transfer-encoding', REMOVE],
  ['upgrade', REMOVE],
  ['x-request-id', REMOVE],
  ['content-length', CONTENT_LENGTH],
  ['trailer', TRAILER],
  ['grpc-status', GRPC_STATUS],
  ['x-ratelimit-limit', LEGACY_LIMIT],
  ['x-ratelimit-remaining', LEGACY_LIMIT],
  ['x-ratelimit-reset', LEGACY_LIMIT],
  ['x-ratelimit-reset-after', LEGACY_LIMIT],
])

/** A header name as an upstream writes it. */
export interface HeaderName {
  readonly text: string
  readonly lower: string
  readonly action: number
}

/** A name that was read before. */
interface KnownName extends HeaderName {
  readonly bytes: Buffer
}

const PLACES = 256

/** Names that were read last, each at a place that follows from its bytes: responses have the same few. */
const known: (KnownName | undefined)[] = Array.from({ length: PLACES }, () => undefined)

export function headerNameOf(text: string): HeaderName {
  const lower = text.toLowerCase()
  return { text, lower, action: ACTIONS.get(lower) ?? PASS }
}

/** The name in these bytes. To compare with a name that is known costs a fraction of what reading does. */
export function readHeaderName(bytes: Buffer): HeaderName {
  const { length } = bytes
  const place = (length * 31 + bytes[0]! * 7 + bytes[length - 1]!) % PLACES
  const found = known[place]
  if (found !== undefined && isSame(found.bytes, bytes)) return found
  const name = { ...headerNameOf(bytes.toString('latin1')), bytes: Buffer.from(bytes) }
  known[place] = name
  return name
}

function isSame(one: Buffer, other: Buffer): boolean {
  const { length } = one
  if (length !== other.length) return false
  for (let index = 0; index < length; index++) if (one[index] !== other[index]) return false
  return true
}
