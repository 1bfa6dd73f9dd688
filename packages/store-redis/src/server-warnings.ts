import type { ScriptRunner } from './wire/script-runner.ts'

/** Something about the server that makes limits less than they promise. */
export interface ServerWarning {
  readonly code: 'SLUICE_EVICTION' | 'SLUICE_SERVER_TOO_OLD' | 'SLUICE_NO_PERMISSION'
  /** What was found, what was expected, what to do. */
  readonly message: string
}

const OLDEST = [6, 2] as const

/** Looks at the server once. What it may not be asked (managed servers forbid CONFIG) is not looked at. Never fails. */
export async function inspectServer(runner: ScriptRunner): Promise<readonly ServerWarning[]> {
  const [info, policy] = await Promise.all([
    ask(runner, ['INFO', 'server']),
    ask(runner, ['CONFIG', 'GET', 'maxmemory-policy']),
  ])
  return [...versionWarnings(textOf(info)), ...evictionWarnings(policyIn(policy))]
}

/** A user that lacks a permission: every check is decided by failure mode, which may allow them all. */
export function deniedWarning(denial: Error): ServerWarning {
  return { code: 'SLUICE_NO_PERMISSION', message: `Checks are decided without Redis. ${denial.message}` }
}

async function ask(runner: ScriptRunner, command: readonly string[]): Promise<unknown> {
  try {
    return await runner.command(command, '')
  } catch {
    return undefined
  }
}

/** CONFIG GET answers with a list, or, by RESP3, with a map. */
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
        'An evicted counter lets its key start afresh. Give limits an instance of their own, with noeviction.',
    },
  ]
}

function versionWarnings(info: string): ServerWarning[] {
  const version = /^redis_version:(\d+)\.(\d+)/m.exec(info)
  if (version === null) return []
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return []
  return [
    {
      code: 'SLUICE_SERVER_TOO_OLD',
      message: `The server is Redis ${major}.${minor}, expected ${OLDEST.join('.')} or later, or Valkey. Please upgrade it.`,
    },
  ]
}
