import { readFile, rename } from 'node:fs/promises'
import type { DeliveryRecord } from '@sluice/runtime'
import { replaceFile } from '@sluice/runtime'
import type { AlertState } from './alert-record.ts'
import type { ClusterState } from './cluster-state.ts'
import type { WebhookMessage } from './webhook-channel.ts'

const FORMAT = 'sluice-alerts'
const FORMAT_VERSION = 1

/** The parts of the file by name, each plain data. */
interface FileParts {
  /** Alerts of this node. */
  readonly monitor: AlertState
  /** Copies of the shared state, by coordinator. */
  readonly 'cluster-database': ClusterState
  readonly 'cluster-redis': ClusterState
  /** Id of this node. */
  readonly node: string
  /** Webhook messages that are not delivered. */
  readonly deliveries: readonly DeliveryRecord<WebhookMessage>[]
}

/** One part of a {@link StateFile}. */
export interface StatePart<T> {
  /** What was saved last; undefined if nothing was. */
  load(): T | undefined
  /** Of several saves at once the last counts. Rejects if it could not be written. */
  save(value: T): Promise<void>
}

/**
 * The file in which alerts survive a restart. It is complete at any time, even if the process or the machine dies: each
 * write goes to a new file that replaces it. Only its owner can read it. It belongs to one process.
 */
export class StateFile {
  readonly #path: string
  #parts: Partial<FileParts>
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  private constructor(path: string, parts: Partial<FileParts>) {
    this.#path = path
    this.#parts = parts
  }

  /**
   * Reads the file if it exists. A damaged file is renamed, `onDamaged` gets its new path, and a new one begins.
   * Rejects if the file exists but cannot be read.
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

  part<Name extends keyof FileParts>(name: Name): StatePart<FileParts[Name]> {
    return { load: () => this.#parts[name], save: (value) => this.#save({ [name]: value }) }
  }

  /**
   * Resolves when the part, or a later value of it, is on disk. A part that could not be written goes into the next
   * write.
   */
  #save(part: Partial<FileParts>): Promise<void> {
    this.#parts = { ...this.#parts, ...part }
    // Everything that is saved during a write goes into the next one.
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

/** The parts in a file that this version wrote; undefined for any other text. */
function partsIn(text: string): Partial<FileParts> | undefined {
  try {
    const { format, version, parts } = JSON.parse(text)
    const isOurs = format === FORMAT && version === FORMAT_VERSION && typeof parts === 'object' && parts !== null
    return isOurs ? parts : undefined
  } catch {
    return undefined
  }
}
