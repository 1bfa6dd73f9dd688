import type { FieldProblem } from '@sluice/contract'
import type { Settings } from '@sluice/service/settings'

/** What the service says about a configuration file. */
export interface RulesFileReport {
  /** Number of rules; 0 when the file has problems, or only settings. */
  readonly rules: number
  readonly problems: readonly FieldProblem[]
}

/** Checks the `service` settings and the rules in a file, as the service does when it starts with `--config <file>` alone. */
export async function checkConfigFile(path: string): Promise<RulesFileReport> {
  // Loaded only when needed: most commands have nothing to do with the service itself.
  const { readSettings } = await import('@sluice/service/settings')
  try {
    return await checkRules(readSettings({ args: [`--config=${path}`], environment: {} }))
  } catch (error) {
    const { code, problems } = error as { readonly code?: string; readonly problems?: readonly FieldProblem[] }
    if (code !== 'SLUICE_SERVICE_INVALID_SETTING' || problems === undefined) throw error
    return { rules: 0, problems: problems.map((problem) => ({ ...problem, path: '/service' })) }
  }
}

/** Checks the rules file that the settings name, as the service does with these settings. */
export async function checkRules(settings: Settings): Promise<RulesFileReport> {
  const { checkRulesFile } = await import('@sluice/service/rules-file')
  try {
    return { rules: await checkRulesFile(settings), problems: [] }
  } catch (error) {
    const { code, problems } = error as { readonly code?: string; readonly problems?: readonly FieldProblem[] }
    if (code !== 'SLUICE_INVALID_RULE_SET' || problems === undefined) throw error
    return { rules: 0, problems }
  }
}
