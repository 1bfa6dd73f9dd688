import { type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { SluiceError, type Timers } from '@sluice/core'
import type { NotificationSource } from '../follow/change-notifications.ts'

/** Attempts to read a file that keeps changing before it is left for later. */
const MOST_LOOKS = 20

/** Options of {@link WatchedFile}. */
export interface WatchedFileOptions {
  readonly path: string
  /** Time in milliseconds for which a changed file must stay unchanged before it is read. */
  readonly settleMs: number
  readonly timers: Timers
}

/**
 * A file that other programs write. It is read only if no program seems to be writing it: half a file may be valid,
 * with rules missing.
 */
export class WatchedFile {
  readonly #options: WatchedFileOptions
  /** Metadata of the file when it was last read. */
  #stamp: string | undefined
  #wake: (() => void) | undefined
  #isStopped = false

  constructor(options: WatchedFileOptions) {
    this.#options = options
  }

  /**
   * The content of the file; undefined if its metadata is unchanged since the last read, unless `mustRead`. Rejects if
   * the file cannot be read or keeps changing.
   */
  async read(mustRead: boolean): Promise<Uint8Array | undefined> {
    const { path } = this.#options
    let stamp = await this.#stampNow()
    if (stamp === this.#stamp && !mustRead) return undefined
    let isSettled = stamp === this.#stamp || this.#stamp === undefined
    for (let looks = 0; looks < MOST_LOOKS && !this.#isStopped; looks++) {
      if (!isSettled) await this.#settle()
      const before = await this.#stampNow()
      isSettled = before === stamp
      stamp = before
      if (!isSettled) continue
      const content = await readFile(path).catch((error: unknown) => this.#fail(error))
      stamp = await this.#stampNow()
      isSettled = stamp === before
      if (!isSettled) continue
      this.#stamp = stamp
      return content
    }
    return this.#fail(new Error('it keeps changing'))
  }

  /** Stops waiting. */
  stop(): void {
    this.#isStopped = true
    this.#wake?.()
  }

  #settle(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.timers.schedule(this.#options.settleMs, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }

  async #stampNow(): Promise<string> {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(this.#options.path, { bigint: true })
      return [dev, ino, size, mtimeNs, ctimeNs].join(':')
    } catch (error) {
      return this.#fail(error)
    }
  }

  #fail(cause: unknown): never {
    const { path } = this.#options
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new SluiceError('SLUICE_NOT_FOUND', {
        problem: `there is no configuration file ${path}`,
        action: 'Create it: Sluice reads it as soon as it exists.',
        cause,
      })
    }
    throw new SluiceError('SLUICE_CONFIG_UNAVAILABLE', {
      problem: `the configuration file ${path} cannot be read: ${String(cause)}`,
      action: 'Sluice retries automatically.',
      cause,
    })
  }
}

/**
 * Reports changes in a folder. The file itself is not watched: editors and deployments replace it, and a watch would
 * follow the replaced file.
 */
export class FolderHints implements NotificationSource {
  readonly #folder: string
  #watcher: FSWatcher | undefined
  #identity: string | undefined
  #changed: (() => void) | undefined
  #lost: ((error: unknown) => void) | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  async watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>> {
    this.#changed = changed
    this.#lost = lost
    this.#begin(await this.#identityNow())
    return () => {
      this.#changed = undefined
      this.#end()
      return Promise.resolve()
    }
  }

  /** Watches again if the folder was replaced, for example the target of a link. Never rejects. */
  async check(): Promise<void> {
    if (this.#changed === undefined) return
    const identity = await this.#identityNow().catch(() => undefined)
    if (identity === undefined || (identity === this.#identity && this.#watcher !== undefined)) return
    this.#end()
    try {
      this.#begin(identity)
    } catch (error) {
      this.#lost?.(error)
    }
  }

  #begin(identity: string): void {
    // The watch may have ended meanwhile.
    if (this.#changed === undefined) return
    const watcher = watch(this.#folder, { persistent: false })
    watcher.on('change', () => this.#changed?.())
    watcher.on('error', (error) => {
      if (this.#watcher !== watcher) return
      this.#end()
      this.#lost?.(error)
    })
    this.#watcher = watcher
    this.#identity = identity
  }

  #end(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  async #identityNow(): Promise<string> {
    const { dev, ino } = await stat(this.#folder, { bigint: true })
    return `${dev}:${ino}`
  }
}
