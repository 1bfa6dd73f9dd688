import { stat } from 'node:fs/promises'
import type { Timers } from '@sluice/core'

/** How often files are looked at, as the configuration file is. */
const LOOK_EVERY_MS = 1000

/** Looks whether the files that a configuration names have changed. */
export class FileWatch {
  readonly #timers: Timers
  readonly #onChange: () => void
  #files: readonly string[] = []
  /** Of the files when they were last looked at; undefined before. */
  #stamps: string | undefined
  #cancel: (() => void) | undefined

  constructor(timers: Timers, onChange: () => void) {
    this.#timers = timers
    this.#onChange = onChange
  }

  /** Watches these files instead of those before. `stamps`: of the files as they were read. */
  watch(files: readonly string[], stamps: string): void {
    this.#files = files
    this.#stamps = stamps
    if (files.length === 0) this.close()
    else this.#cancel ??= this.#timers.schedule(LOOK_EVERY_MS, this.#look)
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  readonly #look = (): void => {
    this.#cancel = this.#timers.schedule(LOOK_EVERY_MS, this.#look)
    const files = this.#files
    void stampsOf(files).then((stamps) => {
      if (files !== this.#files || stamps === this.#stamps) return
      // Also if they cannot be used: they are tried again when they change again.
      this.#stamps = stamps
      this.#onChange()
    })
  }
}

/** Changes when a file does. A file that is not there has a stamp, too. */
export async function stampsOf(files: readonly string[]): Promise<string> {
  const stamps = files.map(async (file) => {
    try {
      const { mtimeMs, size, ino } = await stat(file)
      return `${mtimeMs}:${size}:${ino}`
    } catch {
      return 'missing'
    }
  })
  return (await Promise.all(stamps)).join('|')
}
