import type { ScriptRunner } from './wire/script-runner.ts'

/** A server setting that weakens limits. */
export interface ServerWarning {
  readonly code: 'SLUICE_EVICTION' | 'SLUICE_SERVER_TOO_OLD' | 'SLUICE_NO_PERMISSION'
  /** What was found, what was expected, and what to do. */
  readonly message: string
}

const MIN_VERSION = [6, 2] as const

/** Checks the settings of the server, as far as it allows (managed servers forbid CONFIG). Never rejects. */
export async function inspectServer(runner: ScriptRunner): Promise<readonly ServerWarning[]> {
  const [info, policy] = await Promise.all([
    send(runner, ['INFO', 'server']),
    send(runner, ['CONFIG', 'GET', 'maxmemory-policy']),
  ])
  return [...versionWarnings(textOf(info)), ...evictionWarnings(policyIn(policy))]
}

/** The user lacks a permission: every check is decided by its failure mode, which may allow them all. */
export function deniedWarning(denial: Error): ServerWarning {
  return { code: 'SLUICE_NO_PERMISSION', message: `Checks are decided without Redis. ${denial.message}` }
}

async function send(runner: ScriptRunner, command: readonly string[]): Promise<unknown> {
  try {
    return await runner.command(command, '')
  } catch {
    return undefined
  }
}

/** CONFIG GET replies with a list, or, in RESP3, with a map. */
function policyIn(reply: unknown): string {
  if (reply instanceof Map) return textOf([...reply.values()][0])
  if (Array.isArray(reply)) return textOf(reply[1])
  if (typeof reply === 'object' && reply !== null && !Buffer.isBuffer(reply)) return textOf(Object.values(reply)[0])
  return ''
}

function textOf(value: unknown): string {
  return Buffer.isBuffer(value) || typeof value === 'string' ? value.toString() : ''
}

function evictionWarnings(policy: string): ServerWarning[] {
  if (policy === '' || policy === 'noeviction') return []
  return [
    {
      code: 'SLUICE_EVICTION',
      message:
        `Redis may evict counters before their time: maxmemory-policy is "${policy}", expected "noeviction". ` +
        'An evicted counter starts again from zero. Use a separate instance for limits, with noeviction.',
    },
  ]
}

function versionWarnings(info: string): ServerWarning[] {
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(info)
  if (version === null) return []
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1])) return []
  return [
    {
      code: 'SLUICE_SERVER_TOO_OLD',
      message:
        `The server is Redis ${major}.${minor}, expected ${MIN_VERSION.join('.')} or later, or Valkey. Please ` +
        'upgrade it.',
    },
  ]
}
