import { hash } from 'node:crypto'

/** Keys that can stand in a Redis key as they are: none of these characters ends a hash tag or looks like a digest's mark. */
const PLAIN = /^[A-Za-z0-9_.:@/+-]{1,64}$/

/** Version of what is stored, in every key: a later version that stores otherwise uses another number. */
const FORMAT = 1

/**
 * Names the keys in Redis that belong to the key of a caller. Short plain keys stay readable (`sluice:1:{=user-7}`), any
 * other becomes the SHA-256 of its UTF-16 (`sluice:1:{#...}`), so names are short, different keys have different names, and no character
 * in a key can move it to another slot. All names of one key share a hash tag: in a cluster they live in one slot.
 */
export class SubjectNames {
  readonly #plain: string
  readonly #hashed: string

  /** What all names match, and those of longer prefixes do not. */
  readonly pattern: string

  constructor(prefix: string) {
    this.pattern = `${prefix}:${FORMAT}:{*`
    this.#plain = `${prefix}:${FORMAT}:{=`
    this.#hashed = `${prefix}:${FORMAT}:{#`
  }

  /** The record of all small states of a key. */
  record(key: string): string {
    return PLAIN.test(key)
      ? `${this.#plain}${key}}`
      : `${this.#hashed}${hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')}}`
  }
}

/** Whether a name is that of a record, and not of something beside one. */
export function isRecordName(name: string): boolean {
  return name.endsWith('}')
}

/** The key of a long state beside a record. */
export function longName(record: string, tag: string): string {
  return `${record}:${tag}`
}

/** The sorted set of a subject's reservations by their end. */
export function holdSetName(record: string): string {
  return `${record}:h`
}

/** The hash of what each of a subject's reservations was charged. */
export function holdNotesName(record: string): string {
  return `${record}:n`
}
