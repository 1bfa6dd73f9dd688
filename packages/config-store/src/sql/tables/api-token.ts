import { createHash, timingSafeEqual } from 'node:crypto'

const ID_BYTES = 9
const SECRET_BYTES = 32
const ID_LENGTH = 12
const SECRET_LENGTH = 43
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const TOKEN = new RegExp(`^(slk_[0-9A-Za-z]{${ID_LENGTH}})_([0-9A-Za-z]{${SECRET_LENGTH}})$`)

/** Compared with when there is no such key, so that it takes as long as when there is one. */
const NOBODY = hashSecret('')

/** A token that was just made, and what is kept of it. */
export interface NewToken {
  /** `slk_<id>`, visible. */
  readonly id: string
  /** `slk_<id>_<secret>`, to be shown once. */
  readonly token: string
  /** SHA-256 of the secret, in hexadecimal digits. */
  readonly secretHash: string
}

/** Makes a token out of bytes that nobody can guess. Its secret has 256 bits. */
export function makeToken(randomBytes: (count: number) => Uint8Array): NewToken {
  const id = `slk_${digitsOf(randomBytes(ID_BYTES), ID_LENGTH)}`
  const secret = digitsOf(randomBytes(SECRET_BYTES), SECRET_LENGTH)
  return { id, token: `${id}_${secret}`, secretHash: hashSecret(secret) }
}

/** The id of a token and a hash of its secret; undefined for anything that does not look like a token. */
export function readToken(token: string): Pick<NewToken, 'id' | 'secretHash'> | undefined {
  const [, id, secret] = TOKEN.exec(token) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secretHash: hashSecret(secret) }
}

/** Whether two hashes of {@link readToken} are the same, in a time that does not tell where they differ. */
export function isSameHash(given: string, kept: string | undefined): boolean {
  const isEqual = timingSafeEqual(Buffer.from(given, 'hex'), Buffer.from(kept ?? NOBODY, 'hex'))
  return isEqual && kept !== undefined
}

function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Bytes as a number in base 62, which needs no escaping anywhere. */
function digitsOf(bytes: Uint8Array, length: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  while (text.length < length) {
    text = DIGITS[Number(rest % 62n)] + text
    rest /= 62n
  }
  return text
}
