import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { HintSource } from '../follow/hint-sources.ts'

/**
 * Tells of changes in a folder. A file is not watched itself: editors and deployments put another one in its place, and what
 * watches a file goes on with the one that is gone.
 */
export class FolderHints implements HintSource {
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

  /** Another folder may have taken its place by now, such as the target of a link: then that is watched. Never rejects. */
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
    // It may have been ended meanwhile.
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
