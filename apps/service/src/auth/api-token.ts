import { hash, timingSafeEqual } from 'node:crypto'

/** What a token says: whose it is, and a hash of its secret. */
export interface ReadToken {
  /** `slk_<id>`, the visible part. */
  readonly id: string
  /** SHA-256 of the secret. */
  readonly secretHash: Buffer
}

const TOKEN = /^(slk_[0-9A-Za-z]{1,64})_([0-9A-Za-z]{1,256})$/

const BEARER = /^Bearer +(\S+) *$/i

/** Compared with when there is no such key, so that it takes as long as when there is one. */
const NOBODY = hashSecret('').toString('hex')

/** The token in an `Authorization` header; undefined when it is of another kind, or looks like no token. */
export function readBearer(authorization: string): ReadToken | undefined {
  const [, id, secret] = TOKEN.exec(BEARER.exec(authorization)?.[1] ?? '') ?? []
  return id === undefined || secret === undefined ? undefined : { id, secretHash: hashSecret(secret) }
}

/**
 * Whether a token has the secret of a key, of which the hash is kept in hexadecimal digits. It takes the same time wherever
 * they differ, and when there is no such key.
 */
export function hasSecret({ secretHash }: ReadToken, kept: string | undefined): boolean {
  const isEqual = timingSafeEqual(secretHash, Buffer.from(kept ?? NOBODY, 'hex'))
  return isEqual && kept !== undefined
}

function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}
