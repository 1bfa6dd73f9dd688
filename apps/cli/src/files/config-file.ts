import type { FieldProblem } from '@sluice/contract'
import type { Settings } from '@sluice/service/settings'

/** Result of checking a configuration file. */
export interface ConfigFileReport {
  /** Number of rules; 0 if the file has problems or contains only settings. */
  readonly rules: number
  readonly problems: readonly FieldProblem[]
  /** What may be a mistake, although the service starts with it. */
  readonly warnings: readonly string[]
}

/** Checks the `service` settings and the rules in a file, like a service that starts with `--config <file>` only. */
export async function checkConfigFile(path: string): Promise<ConfigFileReport> {
  // Loaded on demand: most commands do not need the code of the service.
  const { readSettings } = await import('@sluice/service/settings')
  try {
    return await checkRules(readSettings({ args: [`--config=${path}`], environment: {} }))
  } catch (error) {
    const { code, problems } = error as { readonly code?: string; readonly problems?: readonly FieldProblem[] }
    if (code !== 'SLUICE_SERVICE_INVALID_SETTING' || problems === undefined) throw error
    return { rules: 0, problems: problems.map((problem) => ({ ...problem, path: '/service' })), warnings: [] }
  }
}

/** Checks the rules file of these settings, like the service. */
export async function checkRules(settings: Settings): Promise<ConfigFileReport> {
  const { checkRulesFile } = await import('@sluice/service/rules-file')
  try {
    const { rules, undeclared } = await checkRulesFile(settings)
    const warnings = undeclared.map(({ dimension, nearest, paths }) => {
      const meant = nearest === undefined ? '' : `; did you mean "${nearest}"?`
      const rest = paths.length === 1 ? '' : ` and ${paths.length - 1} more`
      return `dimension "${dimension}" at ${paths[0]}${rest} is neither built in nor listed under "dimensions"${meant}`
    })
    return { rules, problems: [], warnings }
  } catch (error) {
    const { code, problems } = error as { readonly code?: string; readonly problems?: readonly FieldProblem[] }
    if (code !== 'SLUICE_INVALID_RULE_SET' || problems === undefined) throw error
    return { rules: 0, problems, warnings: [] }
  }
}
