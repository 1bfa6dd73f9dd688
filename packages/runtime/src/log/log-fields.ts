import { requireName } from '../option-range.ts'

/** Structured fields of a log line, by name. */
export type LogFields = Readonly<Record<string, unknown>>

const DEEPEST = 6
const MOST_ITEMS = 100
const LONGEST_TEXT = 8192

/**
 * Converts `fields` to plain data without secrets, limited in depth (6), items per list or object (100) and string
 * length (8192). Omissions leave a note. Never throws, whatever getters do.
 */
export function plainFields(fields: LogFields, redaction: Redaction): Record<string, unknown> {
  return plainObject(Object.keys(fields), (name) => fields[name], { redaction, depth: 1, above: [fields] })
}

interface Place {
  readonly redaction: Redaction
  readonly depth: number
  /** Enclosing objects. */
  readonly above: readonly object[]
}

function plainValue(value: unknown, place: Place): unknown {
  switch (typeof value) {
    case 'string':
      return plainText(value, place.redaction)
    case 'bigint':
      return String(value)
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'function':
    case 'symbol':
      return `[${typeof value}]`
    case 'object':
      return value === null ? null : plainObjectOf(value, place)
    default:
      return value
  }
}

function plainText(text: string, redaction: Redaction): string {
  const rest = text.length - LONGEST_TEXT
  // Truncate first: searching secrets in a string of any length would take unbounded time.
  return rest > 0 ? `${redaction.text(text.slice(0, LONGEST_TEXT))}[${rest} more]` : redaction.text(text)
}

function plainObjectOf(value: object, place: Place): unknown {
  if (place.above.includes(value)) return '[circular]'
  if (place.depth >= DEEPEST) return '[deeper]'
  const inner = { ...place, depth: place.depth + 1, above: [...place.above, value] }
  try {
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    if (Array.isArray(value)) return plainList(value, inner)
    if (value instanceof Map) return plainMap(value, inner)
    if (value instanceof Set) return plainList([...value], inner)
    if (value instanceof Error) return plainError(value, inner)
    if ('toJSON' in value && typeof value.toJSON === 'function') return plainValue(value.toJSON(), inner)
    return plainObject(Object.keys(value), (name) => (value as LogFields)[name], inner)
  } catch {
    // A getter or toJSON threw.
    return '[unreadable]'
  }
}

function plainList(list: readonly unknown[], place: Place): unknown[] {
  const shown = list.slice(0, MOST_ITEMS).map((item) => plainValue(item, place) ?? null)
  return list.length > MOST_ITEMS ? [...shown, `[${list.length - MOST_ITEMS} more]`] : shown
}

function plainMap(map: ReadonlyMap<unknown, unknown>, place: Place): Record<string, unknown> {
  const byName = new Map(Array.from(map, ([key, value]) => [String(key), value]))
  return plainObject([...byName.keys()], (name) => byName.get(name), place)
}

function plainObject(names: readonly string[], read: (name: string) => unknown, place: Place): Record<string, unknown> {
  // No prototype, so that a field called `__proto__` is an ordinary one.
  const plain: Record<string, unknown> = Object.create(null)
  for (const name of names.slice(0, MOST_ITEMS)) plain[name] = plainField(name, read, place)
  if (names.length > MOST_ITEMS) plain['[more]'] = names.length - MOST_ITEMS
  return plain
}

function plainField(name: string, read: (name: string) => unknown, place: Place): unknown {
  try {
    const value = read(name)
    return value !== undefined && place.redaction.isSecret(name, value) ? REDACTED : plainValue(value, place)
  } catch {
    return '[unreadable]'
  }
}

/** An error with its non-enumerable fields and everything that was added to it. */
function plainError(error: Error, place: Place): Record<string, unknown> {
  const own = ['name', 'message', 'stack', 'cause', 'errors'].filter((name) => name === 'name' || name in error)
  const added = Object.keys(error).filter((name) => !own.includes(name))
  return plainObject([...own, ...added], (name) => (error as unknown as LogFields)[name], place)
}

/** Replaces a secret. */
const REDACTED = '[redacted]'

/** Parts of names, in lower case and without separators: `x-api-key` and `clientSecret` have one. */
const SECRET_NAMES = [
  'authorization',
  'apikey',
  'token',
  'password',
  'passphrase',
  'cookie',
  'secret',
  'credential',
  'privatekey',
]

const MOST_KNOWN = 1000

// Does not match `tokenSource`, where a new word starts after `token`.
const PLURAL_TOKENS = /[tT]okens(?![a-z])/g

// User and password of a URL, and the credentials of an Authorization header.
const ADDRESS_LOGIN = /:\/\/[^/?#\s"']+@/g
const CREDENTIALS = /\b(bearer\s+(?=[\w.~+/=-]{8})|basic\s+(?=[\w.~+/=-]{16}))[\w.~+/=-]+/gi

/** Detects secrets by field name and by pattern. */
export class Redaction {
  readonly #names: readonly string[]
  /** Cache by name: most lines have the same few. */
  readonly #known = new Map<string, boolean>()

  /** `more`: additional names of secrets; case and separators do not matter. */
  constructor(more: readonly string[] = []) {
    this.#names = [...SECRET_NAMES, ...more.map((name) => requireName('redact', plainName(name)))]
  }

  /**
   * Whether a field of this name is a secret. A name with the plural `tokens` is not, if its value is a number: that is
   * an amount.
   */
  isSecret(name: string, value: unknown): boolean {
    const meant = typeof value === 'number' ? name.replaceAll(PLURAL_TOKENS, '') : name
    const known = this.#known.get(meant)
    if (known !== undefined) return known
    const plain = plainName(meant)
    const isSecret = this.#names.some((secret) => plain.includes(secret))
    if (this.#known.size < MOST_KNOWN) this.#known.set(meant, isSecret)
    return isSecret
  }

  /** The text without passwords of URLs and credentials of Authorization headers. */
  text(text: string): string {
    return text.replaceAll(ADDRESS_LOGIN, `://${REDACTED}@`).replaceAll(CREDENTIALS, `$1${REDACTED}`)
  }
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}
