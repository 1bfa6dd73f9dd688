import { CHECK_PATH } from '@sluice/contract'
import { shownUrl } from './limits/shown-url.ts'
import type { Settings } from './settings.ts'

/** What the start of the service tells its user. */
export interface StartupFacts {
  readonly settings: Settings
  readonly port: number
  /** Number of the rules in force; undefined while there are none. */
  readonly version: number | undefined
  /** The first API key, when it was just made. */
  readonly firstKey: string | undefined
}

/** The text to print when the service runs: what, where, what it remembers where, and one command to try. */
export function startupMessage({ settings, port, version, firstKey }: StartupFacts): string {
  const { host } = settings
  const origin = `http://${reachable(host)}:${port}`
  const lines = [
    'Sluice is running.',
    `  check API   ${origin}${CHECK_PATH}`,
    `  admin API   ${origin}/admin, with an API key; ${origin}/openapi.json describes it`,
    `  metrics     ${origin}/metrics`,
    `  health      ${origin}/livez and ${origin}/readyz`,
    `  counters    ${countersOf(settings)}`,
    `  rules       ${rulesOf(settings, version)}`,
    `  reach       ${isLoopback(host) ? 'this machine only; HOST=0.0.0.0 npm start opens it to others' : reachOf(settings)}`,
    ...(firstKey === undefined ? [] : [firstKeyMessage(firstKey)]),
    'Try it:',
    `  curl -i ${origin}${CHECK_PATH} -H 'Content-Type: application/json' -d '{"userId":"user-123","resource":"/api/v1/data"}'`,
  ]
  return lines.join('\n')
}

/** Shows the first API key: the only time that anybody sees it. */
export function firstKeyMessage(token: string): string {
  return `The first API key, which may do everything and is shown only now:\n  ${token}`
}

function countersOf({ redis, threads }: Settings): string {
  if (redis !== undefined) return `in Redis at ${redis.urls.map(shownUrl).join(', ')}`
  return threads === 1 ? 'in the memory of this process' : `in memory shared by the ${threads} threads of this process`
}

function rulesOf({ rulesFile, databaseUrl, dataDir }: Settings, version: number | undefined): string {
  const place = rulesFile ?? (databaseUrl === undefined ? `SQLite in ${dataDir}` : shownUrl(databaseUrl))
  return version === undefined ? `none yet, from ${place}: everything is allowed` : `version ${version}, from ${place}`
}

function reachOf({ host, checkKey }: Settings): string {
  return `all who reach ${host}${checkKey ? '' : '; the check API asks for no key (--check-key does)'}`
}

/** The host to put into an address: one that stands for all addresses is not itself one to connect to. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
