import { SluiceError } from '../errors.ts'

/** Longest accepted key, in UTF-16 code units. */
export const LONGEST_KEY = 4096

/**
 * One key out of several parts, such that different lists of parts always give different keys: every part is preceded
 * by its length, so no character in it can be taken for a separator. Parts may be empty and may hold any character.
 */
export function joinKey(parts: readonly string[]): string {
  let key = ''
  for (const part of parts) key += `${part.length}:${part}`
  return key
}

/**
 * Throws `SLUICE_INVALID_KEY` unless `key` is a text of 1 to {@link LONGEST_KEY} code units. Any character is allowed.
 */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key === 'string' && key.length > 0 && key.length <= LONGEST_KEY) return
  throw new SluiceError('SLUICE_INVALID_KEY', {
    problem: 'the key cannot be used',
    received: typeof key === 'string' ? `a text of ${key.length} characters` : key,
    expected: `a text of 1 to ${LONGEST_KEY} characters`,
    action: 'Use a short stable identity such as a user id; hash longer ones first.',
  })
}
