import { isDeepStrictEqual } from 'node:util'
import type { FileContent } from '@sluice/core/policy'
import type { Logger } from '@sluice/runtime'
import { serviceProblems } from '../setting-sources.ts'
import type { Settings } from '../settings.ts'

/** What a {@link FileSettingsWatch} works with. */
export interface FileSettingsParts {
  /** The file, as the log calls it. */
  readonly file: string
  readonly log: Logger
  /** What the service was started with. */
  readonly settings: Pick<Settings, 'fileSettings'>
}

type ServicePart = NonNullable<FileContent['service']>

/**
 * Says in the log when the settings in the file of the rules are no longer those that the service was started with: a change of
 * rules takes effect at once, one of settings only with the next start, and what cannot be used would stop that.
 */
export class FileSettingsWatch {
  readonly #parts: FileSettingsParts
  readonly #started: ServicePart
  #known: ServicePart

  constructor(parts: FileSettingsParts) {
    this.#parts = parts
    this.#started = parts.settings.fileSettings as ServicePart
    this.#known = this.#started
  }

  /** Looks at what stands under `service` now. What was told is not told again while it stays as it is. */
  look(service: ServicePart = {}): void {
    if (isDeepStrictEqual(service, this.#known)) return
    this.#known = service
    const { file, log } = this.#parts
    const problems = serviceProblems(service, file)
    const names = [...new Set([...Object.keys(this.#started), ...Object.keys(service)])]
    // By name only: values may be secrets.
    const settings = names.filter((name) => !isDeepStrictEqual(service[name], this.#started[name]))
    if (problems.length > 0) {
      log.error('settings in the file cannot be used: the next start would fail', { file, settings, problems })
    } else if (settings.length > 0) {
      log.warn('settings in the file have changed: they apply from the next start', { file, settings })
    } else log.info('the settings in the file are again those that the service was started with', { file })
  }
}
