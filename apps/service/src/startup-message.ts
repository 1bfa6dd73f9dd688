import type { ConfigStats } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import { RuleSetError } from '@sluice/core/policy'
import type { RecoveredKey } from './config/admin-key.ts'
import { isServiceError, SERVICE_ERRORS } from './service-error.ts'
import type { Settings } from './settings.ts'
import { isLoopback, originOf, shownUrl } from './settings.ts'

/** What the start of the service tells its user. */
export interface StartupFacts {
  readonly settings: Settings
  readonly port: number
  /** Which rules are in force, and where they are from; undefined while there are none. */
  readonly rules: Pick<ConfigStats, 'enforcedVersion' | 'source'> | undefined
  /** All that is wrong. */
  readonly reasons: readonly ReadinessReason[]
}

/** Where a key is required. The shell fills it in: the key itself is shown once. */
const KEY_HEADER = ' -H "Authorization: Bearer $SLUICE_API_KEY"'

/** The text to print when the service runs: what, where, what it remembers where, and one command to try. */
export function startupMessage({ settings, port, rules, reasons }: StartupFacts): string {
  const { host } = settings
  const origin = originOf(settings, port)
  const lines = [
    'Sluice is running.',
    `  check API   ${origin}${CHECK_PATH}`,
    `  admin API   ${origin}/admin, with an API key; ${origin}/openapi.json describes it`,
    `  metrics     ${origin}/metrics`,
    `  health      ${origin}/livez and ${origin}/readyz`,
    `  counters    ${countersOf(settings)}`,
    `  rules       ${rulesOf(settings, rules)}`,
    `  reach       ${isLoopback(host) ? 'this machine only; HOST=0.0.0.0 npm start opens it to others' : reachOf(settings)}`,
    ...reasons.map(({ message }) => `  WARNING     ${message}`),
    'Try it:',
    `  curl -i ${origin}${CHECK_PATH} -H 'Content-Type: application/json'${settings.checkKey ? KEY_HEADER : ''} -d '{"userId":"user-123","resource":"/api/v1/data"}'`,
  ]
  return lines.join('\n')
}

/** Shows the first API key, as soon as it is made: the only time that anybody sees it. With a key file, says where it is. */
export function firstKeyMessage(token: string, file: string | undefined): string {
  if (file !== undefined) return `The first API key, which may do everything, is in ${file}.`
  return `The first API key, which may do everything and is shown only now:\n  ${token}`
}

/**
 * Why the service could not start: the code and what it means, each problem on a line of its own, then what to do. Undefined for
 * an error that is a fault of the service itself.
 */
export function startupErrorText(error: unknown): string | undefined {
  if (isServiceError(error)) {
    const { code, problems, action } = error
    const lines = problems.map(({ received, expected }) => `  received ${received}; expected ${expected}`)
    return [`${code}: ${SERVICE_ERRORS[code]}.`, ...lines, action].join('\n')
  }
  if (error instanceof RuleSetError) {
    const lines = error.problems.map(({ path, line, received, expected }) => {
      const place = `${path || 'all of it'}${line === undefined ? '' : ` (line ${line})`}`
      return `  ${place}: received ${received}; expected ${expected}`
    })
    const count = lines.length === 1 ? '1 problem' : `${lines.length} problems`
    const head = `${error.code}: the rules file has ${count}.`
    return [head, ...lines, 'Correct the file and start again. "sluice rules validate <file>" checks it.'].join('\n')
  }
  return isSluiceError(error) ? error.message : undefined
}

/** Shows an API key that was made for somebody who has lost the last one. */
export function recoveredKeyMessage({ token, file }: RecoveredKey): string {
  const advice = 'Find and revoke the lost one: sluice keys list, sluice keys revoke <id>.'
  if (file !== undefined) return `An API key with the role admin is in ${file}. ${advice}`
  return `A new API key with the role admin, which is shown only now:\n  ${token}\n${advice}`
}

function countersOf({ redis, threads }: Settings): string {
  if (redis !== undefined) return `in Redis at ${redis.urls.map(shownUrl).join(', ')}`
  return threads === 1 ? 'in the memory of this process' : `in memory shared by the ${threads} threads of this process`
}

function rulesOf({ rulesFile, databaseUrl, dataDir }: Settings, rules: StartupFacts['rules']): string {
  const place = rulesFile ?? (databaseUrl === undefined ? `SQLite in ${dataDir}` : shownUrl(databaseUrl))
  if (rules?.enforcedVersion === undefined)
    return `none yet, from ${place}: checks are answered with 503 until they are loaded`
  const version = `version ${rules.enforcedVersion}`
  return rules.source === 'disk' ? `${version}, from the copy in ${dataDir}` : `${version}, from ${place}`
}

function reachOf({ host, checkKey }: Settings): string {
  const access = checkKey
    ? 'the check API requires an API key (--no-check-key: none)'
    : 'the check API requires no API key (--check-key requires one)'
  return `all who reach ${host}; ${access}`
}
