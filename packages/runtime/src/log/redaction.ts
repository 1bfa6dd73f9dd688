import { requireName } from '../option-range.ts'

/** Replaces a secret. */
export const REDACTED = '[redacted]'

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
