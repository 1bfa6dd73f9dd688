import { isDeepStrictEqual } from 'node:util'
import type { FileContent } from '@sluice/core/policy'
import type { Logger } from '@sluice/runtime'
import { serviceProblems } from '../settings/flags-environment-file.ts'
import type { Settings } from '../settings/settings.ts'

/** Options of {@link FileSettingsWatch}. */
export interface FileSettingsParts {
  /** Path of the file, for the log. */
  readonly file: string
  readonly log: Logger
  /** Settings that the service was started with. */
  readonly settings: Pick<Settings, 'fileSettings'>
}

type ServicePart = NonNullable<FileContent['service']>

/**
 * Logs when the settings in the rules file differ from those that the service was started with. A change of rules
 * applies at once, a change of settings at the next start, which invalid settings would stop.
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

  /** Compares the current `service` part. Logs each state once. */
  look(service: ServicePart = {}): void {
    if (isDeepStrictEqual(service, this.#known)) return
    this.#known = service
    const { file, log } = this.#parts
    const problems = serviceProblems(service, file)
    const names = [...new Set([...Object.keys(this.#started), ...Object.keys(service)])]
    // Names only: values may be secrets.
    const settings = names.filter((name) => !isDeepStrictEqual(service[name], this.#started[name]))
    if (problems.length > 0) {
      log.error('settings in the file cannot be used: the next start would fail', { file, settings, problems })
    } else if (settings.length > 0) {
      log.warn('settings in the file have changed: they apply from the next start', { file, settings })
    } else log.info('the settings in the file are again those that the service was started with', { file })
  }
}
