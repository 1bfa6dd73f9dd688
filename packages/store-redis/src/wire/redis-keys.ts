import { hash } from 'node:crypto'

/** Keys that are used unchanged: none of these characters ends a hash tag or looks like the mark of a digest. */
const READABLE = /^[A-Za-z0-9_.:@/+-]{1,64}$/

/** Version of the storage format, part of every key. */
const FORMAT = 1

/**
 * Maps the keys of callers to Redis keys. Short keys of common characters stay readable (`sluice:1:{=user-7}`). Any
 * other is replaced by the SHA-256 of its UTF-16 (`sluice:1:{#...}`): Redis keys are short and unique, and no character
 * can move a key to another slot. All Redis keys of one key share a hash tag, so in a cluster they are in one slot.
 */
export class RedisKeys {
  readonly #readable: string
  readonly #hashed: string

  /** The pattern that matches all records, and none of longer prefixes. */
  readonly pattern: string

  constructor(prefix: string) {
    this.pattern = `${prefix}:${FORMAT}:{*`
    this.#readable = `${prefix}:${FORMAT}:{=`
    this.#hashed = `${prefix}:${FORMAT}:{#`
  }

  /** The Redis key of the record, which holds all small states of a key. */
  record(key: string): string {
    return READABLE.test(key)
      ? `${this.#readable}${key}}`
      : `${this.#hashed}${hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')}}`
  }
}

/** Whether a Redis key is that of a record. */
export function isRecordKey(name: string): boolean {
  return name.endsWith('}')
}

/** The Redis key of a long state, which is stored outside of the record. */
export function longStateKey(record: string, tag: string): string {
  return `${record}:${tag}`
}

/** The sorted set of the reservations of a key, by expiry. */
export function holdSetKey(record: string): string {
  return `${record}:h`
}

/** The hash of the charges of each reservation of a key. */
export function holdNotesKey(record: string): string {
  return `${record}:n`
}
