import type { Limit } from '@sluice/core/store'
import type { ByteWriter } from './byte-writer.ts'
import { encodingOf } from './limit-encoding.ts'
import { holdNotesKey, holdSetKey, longStateKey } from './redis-keys.ts'

/** The time arguments of a script. */
export interface CallTime {
  /** Microseconds since 1970 to use instead of the server's time; 0 for the server's. */
  readonly givenMicros: number
  /** The approximate time, for the calendar. */
  readonly aboutMicros: number
  /** Milliseconds to add to the expiry of keys. */
  readonly slackMs: number
}

/** What encoding a call requires. */
export interface CallContext {
  readonly writer: ByteWriter
  /** A second writer, for parts that are written first and come last. */
  readonly body: ByteWriter
  readonly time: CallTime
  /** The Redis key of the record of a key. */
  readonly recordOf: (key: string) => string
}

/** The keys and arguments of one call of a script. */
export interface ScriptCall {
  readonly keys: readonly string[]
  readonly args: readonly Buffer[]
}

/** Collects the keys and limits of a call, each once, and assigns their indexes, starting from 1. */
export class CallArguments {
  readonly #records: string[] = []
  readonly #keyIndexes = new Map<string, number>()
  readonly #holds: string[] = []
  readonly #limits = new Map<Limit, number>()
  readonly #limitBytes: Buffer[] = []
  readonly #time: CallTime

  constructor(time: CallTime) {
    this.#time = time
  }

  get isEmpty(): boolean {
    return this.#records.length === 0
  }

  keyIndex(name: string): number {
    let index = this.#keyIndexes.get(name)
    if (index === undefined) {
      index = this.#records.push(name)
      this.#keyIndexes.set(name, index)
    }
    return index
  }

  limitIndex(limit: Limit): number {
    let index = this.#limits.get(limit)
    if (index === undefined) {
      index = this.addLimit(encodingOf(limit).bytes(this.#time.aboutMicros))
      this.#limits.set(limit, index)
    }
    return index
  }

  /** Adds an encoded limit, without checking whether it is there. */
  addLimit(bytes: Buffer): number {
    return this.#limitBytes.push(bytes)
  }

  /** The index of the key of a long state, or 0 when the limit has none. */
  longStateIndex(record: string, tag: string | undefined): number {
    return tag === undefined ? 0 : this.keyIndex(longStateKey(record, tag))
  }

  /** Adds a key that is known not to be there. */
  addKey(name: string): number {
    return this.#records.push(name)
  }

  /** The offset of a record's hold keys among those of the call. Their index is known when all other keys are. */
  holdOffset(record: string): number {
    const name = holdSetKey(record)
    const offset = this.#holds.indexOf(name)
    return offset >= 0 ? offset : this.#holds.push(name, holdNotesKey(record)) - 2
  }

  holdIndex(offset: number): number {
    return this.#records.length + 1 + offset
  }

  get keys(): readonly string[] {
    return this.#holds.length === 0 ? this.#records : [...this.#records, ...this.#holds]
  }

  /** The first argument: the call header, the limits, and the contents of `body`. */
  header(writer: ByteWriter, body?: ByteWriter): Buffer {
    writer.clear()
    writer.double(this.#time.givenMicros)
    writer.double(this.#time.slackMs)
    writer.uint16(this.#records.length)
    writer.uint16(this.#limitBytes.length)
    for (const bytes of this.#limitBytes) writer.bytes(bytes)
    if (body !== undefined) writer.append(body)
    return writer.take()
  }
}
