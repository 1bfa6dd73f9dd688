import type { Verdict } from '../../algorithms/algorithm.ts'
import type { Fingerprint } from '../../fingerprint.ts'
import { expirySecondsOf } from '../decide-batch.ts'
import type { Place, SharedTable } from './shared-table.ts'
import type { Entry } from './transaction.ts'

/** The changes of one decision, gathered and then committed together. Reused from one decision to the next. */
export class WriteSet {
  readonly #table: SharedTable
  readonly #entries: Entry[] = []
  /** Records written for this decision: this thread's again when it is not committed. */
  readonly #written: number[] = []
  /** Records they replace: this thread's when it is. */
  readonly #replaced: number[] = []
  /** Records of other keys among them. */
  readonly #victims: number[] = []
  /** False when two places were read at different times of one word: then what was decided cannot stand. */
  #consistent = true

  constructor(table: SharedTable) {
    this.#table = table
  }

  /** Forgets the changes of the decision before. */
  begin(): void {
    this.#entries.length = 0
    this.#written.length = 0
    this.#replaced.length = 0
    this.#victims.length = 0
    this.#consistent = true
  }

  /** A new state for the key of a place. */
  put(place: Place, fingerprint: Fingerprint, { verdict, used }: { verdict: Verdict; used: number }): void {
    const { records } = this.#table
    const record = records.take()
    records.write(record, fingerprint, { expirySeconds: expirySecondsOf(verdict), used })
    records.writeState(record, verdict.next, verdict.nextLength)
    this.#written.push(record)
    this.#entries.push(this.#table.entryFor(place, record))
    if (place.payload > 0) this.#replaced.push(this.#table.recordIn(place.payload))
    if (place.kind === 'found') return
    if (place.payload > 0) this.#victims.push(this.#table.recordIn(place.payload))
    this.#add(this.#table.bucketEntry(place))
  }

  /** The key of a place goes; its place must be as it was read when it is not there. */
  remove(place: Place): void {
    if (place.kind !== 'found') {
      this.keep(place)
      return
    }
    this.#entries.push(this.#table.entryFor(place, -1))
    this.#replaced.push(this.#table.recordIn(place.payload))
  }

  /** The place must be as it was read. */
  keep(place: Place): void {
    this.#add(place.kind === 'found' ? this.#table.sameEntry(place) : this.#table.bucketEntry(place))
  }

  /** Makes all changes, or none. */
  commit(nowSeconds: number): boolean {
    const { records } = this.#table
    let evictions = 0
    for (const record of this.#victims) if (records.expirySeconds(record) >= nowSeconds) evictions++
    const committed = this.#consistent && this.#table.transactions.commit(this.#entries)
    for (const record of committed ? this.#replaced : this.#written) records.giveBack(record)
    if (committed && evictions > 0) this.#table.count('evictions', evictions)
    return committed
  }

  /** Adds a word that must be as it was read. Two places may have read the same word; they must have read the same. */
  #add(entry: Entry): void {
    const same = this.#entries.find((other) => other.half === entry.half)
    if (same === undefined) this.#entries.push(entry)
    else if (same.version !== entry.version || same.from !== entry.from) this.#consistent = false
  }
}
