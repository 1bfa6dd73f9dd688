import { readFile, rename } from 'node:fs/promises'
import type { DeliveryRecord, DeliveryStore } from '@sluice/runtime'
import { replaceFile } from '@sluice/runtime'
import type { AlertState, AlertStateStore } from './alert-monitor.ts'

const FORMAT = 'sluice-alerts'
const FORMAT_VERSION = 1

/** The parts of a file, by name. */
type Parts = Readonly<Record<string, unknown>>

/**
 * A file of several parts, each plain data. It is whole at any moment, also when the process or the machine dies: a new one is
 * written beside it and takes its place. Only its owner may read it. It belongs to one process.
 */
export class StateFile {
  readonly #path: string
  #parts: Parts
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  private constructor(path: string, parts: Parts) {
    this.#path = path
    this.#parts = parts
  }

  /**
   * Reads the file, if there is one. A file that cannot be understood is put aside, `onDamaged` is told where, and it begins
   * empty. Rejects when the file is there and cannot be read.
   */
  static async open(path: string, onDamaged: (asidePath: string) => void): Promise<StateFile> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    const parts = text === undefined ? {} : partsIn(text)
    if (parts !== undefined) return new StateFile(path, parts)
    const asidePath = `${path}.damaged`
    await rename(path, asidePath)
    onDamaged(asidePath)
    return new StateFile(path, {})
  }

  /** What was put last; undefined when nothing was. */
  get(name: string): unknown {
    return this.#parts[name]
  }

  /**
   * Puts a part. Resolves when it is on disk, or what was put after it; rejects when it could not be written: it is written
   * with the next one then.
   */
  put(name: string, value: unknown): Promise<void> {
    this.#parts = { ...this.#parts, [name]: value }
    // What is put while a write is under way goes into the next one, all together.
    this.#next ??= this.#writing
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        this.#writing = this.#write()
        return this.#writing
      })
    return this.#next
  }

  async #write(): Promise<void> {
    const text = JSON.stringify({ format: FORMAT, version: FORMAT_VERSION, parts: this.#parts })
    await replaceFile(this.#path, text)
  }
}

function partsIn(text: string): Parts | undefined {
  try {
    const { format, version, parts } = JSON.parse(text)
    const isOurs = format === FORMAT && version === FORMAT_VERSION && typeof parts === 'object' && parts !== null
    return isOurs ? parts : undefined
  } catch {
    return undefined
  }
}

const ALERTS = 'monitor'

/** Keeps the state of a monitor in a part of `file`. */
export function alertStateStore(file: StateFile): AlertStateStore {
  return {
    // The file is ours, of this version and whole.
    load: () => file.get(ALERTS) as AlertState | undefined,
    save: (state) => file.put(ALERTS, state),
  }
}

const DELIVERIES = 'deliveries'

/** Keeps what is not delivered in a part of `file`. Every save writes all of it: there are never many. */
export function deliveryFileStore<T>(file: StateFile): DeliveryStore<T> {
  // The file is ours, of this version and whole.
  const kept = (file.get(DELIVERIES) ?? []) as readonly DeliveryRecord<T>[]
  let records = new Map(kept.map((record) => [record.idempotencyKey, record]))
  return {
    load: () => Promise.resolve([...records.values()]),
    async save({ put, removed }) {
      const changed = new Map(records)
      for (const record of put) changed.set(record.idempotencyKey, record)
      for (const key of removed) changed.delete(key)
      await file.put(DELIVERIES, [...changed.values()])
      records = changed
    },
  }
}
