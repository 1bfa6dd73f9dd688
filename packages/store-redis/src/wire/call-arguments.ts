import type { Limit } from '@sluice/core/internal'
import type { ByteWriter } from './byte-writer.ts'
import { codeOf } from './limit-encoding.ts'
import { holdNotesName, holdSetName, longName } from './redis-keys.ts'

/** Time as the scripts take it. */
export interface CallTime {
  /** Microseconds since 1970 to use instead of the server's time; 0 for the server's. */
  readonly givenMicros: number
  /** About what time it is, for the calendar. */
  readonly aboutMicros: number
  /** Milliseconds to keep keys longer than their time. */
  readonly slackMs: number
}

/** What a call needs to be written. */
export interface CallParts {
  readonly writer: ByteWriter
  /** Another one, for what must be written first and comes last. */
  readonly body: ByteWriter
  readonly time: CallTime
  readonly nameOf: (key: string) => string
}

/** The keys and arguments of one call of a script. */
export interface ScriptCall {
  readonly keys: readonly string[]
  readonly args: readonly Buffer[]
}

/** Collects the keys and limits of a call, each once, and gives their numbers, counted from 1. */
export class CallTable {
  readonly #records: string[] = []
  readonly #numbers = new Map<string, number>()
  readonly #holds: string[] = []
  readonly #limits = new Map<Limit, number>()
  readonly #limitBytes: Buffer[] = []
  readonly #time: CallTime

  constructor(time: CallTime) {
    this.#time = time
  }

  /** Whether no key has a number yet. */
  get isEmpty(): boolean {
    return this.#records.length === 0
  }

  keyNumber(name: string): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.#records.push(name)
      this.#numbers.set(name, number)
    }
    return number
  }

  limitNumber(limit: Limit): number {
    let number = this.#limits.get(limit)
    if (number === undefined) {
      number = this.noteLimit(codeOf(limit).bytes(this.#time.aboutMicros))
      this.#limits.set(limit, number)
    }
    return number
  }

  /** Adds a limit by its bytes, without looking whether it is there. */
  noteLimit(bytes: Buffer): number {
    return this.#limitBytes.push(bytes)
  }

  longNumber(record: string, tag: string | undefined): number {
    return tag === undefined ? 0 : this.keyNumber(longName(record, tag))
  }

  /** The number of a key that is known not to be there yet. */
  newKeyNumber(name: string): number {
    return this.#records.push(name)
  }

  /** The place of a subject's holds among those of the call, from 0; their key number is known when all keys are. */
  holdPlace(record: string): number {
    const name = holdSetName(record)
    const place = this.#holds.indexOf(name)
    return place >= 0 ? place : this.#holds.push(name, holdNotesName(record)) - 2
  }

  /** The number of the key at a place of the holds. */
  holdNumber(place: number): number {
    return this.#records.length + 1 + place
  }

  get keys(): readonly string[] {
    return this.#holds.length === 0 ? this.#records : [...this.#records, ...this.#holds]
  }

  /** The opening of a call and its limits, and what was written to `body`, as one argument. */
  opening(writer: ByteWriter, body?: ByteWriter): Buffer {
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
