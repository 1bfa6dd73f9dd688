import { requireName } from '../option-range.ts'

/** What stands in place of a secret. */
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

// Not `tokenSource`, which begins a new word after `token`.
const PLURAL_TOKENS = /[tT]okens(?![a-z])/g

// The user and password of an address, and what follows the scheme of an Authorization header.
const ADDRESS_LOGIN = /:\/\/[^/?#\s"']+@/g
const CREDENTIALS = /\b(bearer\s+(?=[\w.~+/=-]{8})|basic\s+(?=[\w.~+/=-]{16}))[\w.~+/=-]+/gi

/** Decides what must not be written, by the name of a field and by how a text looks. */
export class Redaction {
  readonly #names: readonly string[]
  /** Names that were looked at before: most lines have the same few. */
  readonly #known = new Map<string, boolean>()

  /** `more` are further names of secrets; upper case and separators make no difference. */
  constructor(more: readonly string[] = []) {
    this.#names = [...SECRET_NAMES, ...more.map((name) => requireName('redact', plainName(name)))]
  }

  /**
   * Whether a field of this name has a secret. A name with `tokens` in the plural has none when its value is a number: that
   * is an amount.
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

  /** The text without the password of an address and without the credentials of an Authorization header. */
  text(text: string): string {
    return text.replaceAll(ADDRESS_LOGIN, `://${REDACTED}@`).replaceAll(CREDENTIALS, `$1${REDACTED}`)
  }
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}
