import { createHmac, hash } from 'node:crypto'

const DIGEST_LENGTH = 16

/**
 * A short pseudonym for a key that must not be logged: 16 hexadecimal digits of its SHA-256.
 *
 * Anyone who can guess a key can verify the guess, and IPv4 addresses are easy to enumerate. With a `secret`, the
 * digest is an HMAC, and only holders of the secret can verify it.
 */
export function keyDigest(text: string, secret?: string): string {
  const digest = secret === undefined ? hash('sha256', text) : createHmac('sha256', secret).update(text).digest('hex')
  return digest.slice(0, DIGEST_LENGTH)
}
