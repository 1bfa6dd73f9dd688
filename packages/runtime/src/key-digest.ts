import { createHmac, hash } from 'node:crypto'

const DIGEST_LENGTH = 16

/**
 * A short name for a key that must not be written down: 16 hexadecimal digits of its SHA-256, the same for the same key.
 *
 * Whoever can guess a key can check the guess, and all IPv4 addresses are quickly guessed; with a `secret`, which goes
 * into the digest (HMAC), only those who know it can.
 */
export function keyDigest(text: string, secret?: string): string {
  const digest = secret === undefined ? hash('sha256', text) : createHmac('sha256', secret).update(text).digest('hex')
  return digest.slice(0, DIGEST_LENGTH)
}
