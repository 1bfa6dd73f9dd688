import { SluiceError } from '../errors.ts'

/** Longest accepted key, in UTF-16 code units. */
export const LONGEST_KEY = 4096

/**
 * Joins parts into one key. Different lists of parts always give different keys: every part is preceded by its length,
 * so no character can be mistaken for a separator. Parts may be empty and may contain any character.
 */
export function joinKey(parts: readonly string[]): string {
  let key = ''
  for (const part of parts) key += `${part.length}:${part}`
  return key
}

/** Throws `SLUICE_INVALID_KEY` unless `key` is a string of 1 to {@link LONGEST_KEY} code units, of any characters. */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key === 'string' && key.length > 0 && key.length <= LONGEST_KEY) return
  throw new SluiceError('SLUICE_INVALID_KEY', {
    problem: 'the key cannot be used',
    received: typeof key === 'string' ? `a string of ${key.length} characters` : key,
    expected: `a string of 1 to ${LONGEST_KEY} characters`,
    action: 'Use a short stable identity such as a user id; hash longer ones first.',
  })
}
