import { CHECK_PATH } from '@sluice/contract'
import type { NamedRule } from './check-api/named-rule.ts'

/** What the start of the service tells its user. */
export interface StartupFacts {
  readonly host: string
  readonly port: number
  readonly rule: NamedRule
}

/** The text to print when the service runs: what, where, by which rule, and one command to try. */
export function startupMessage({ host, port, rule }: StartupFacts): string {
  const origin = `http://${reachable(host)}:${port}`
  const { limit, window, algorithm } = rule.rule
  const lines = [
    'Sluice is running.',
    `  check API   ${origin}${CHECK_PATH}`,
    `  health      ${origin}/livez`,
    `  rule        ${rule.name}: ${limit} per ${window} for each ${rule.dimension} (${algorithm}, in memory)`,
    `  reach       ${isLoopback(host) ? 'this machine only; HOST=0.0.0.0 npm start opens it to others' : `all who reach ${host}, without authentication`}`,
    'Try it:',
    `  curl -i ${origin}${CHECK_PATH} -H 'Content-Type: application/json' -d '{"userId":"user-123","resource":"/api/v1/data"}'`,
  ]
  return lines.join('\n')
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
