import type { RedisSettings } from '@sluice/service/settings'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'
import type { Wait } from './server-probe.ts'
import { clockFinding, reasonOf, shownUrl, within } from './server-probe.ts'

type Question = Omit<ServerQuestion, 'url'>

const SENTINEL_PORT = '26379'
const CHECK = 'redis sentinel'

/** How the Redis of a service stands: the servers that its settings name, or the one that its sentinels name. */
export async function redisSetupFindings(redis: RedisSettings, question: Question): Promise<readonly Finding[]> {
  const { urls, isCluster, sentinel } = redis
  if (sentinel !== undefined) return await sentinelFindings(urls, sentinel, question)
  const findings: Finding[] = []
  for (const url of urls) findings.push(...(await redisFindings({ ...question, url }, isCluster)))
  return findings
}

/** What a sentinel said about the primary: where it is, that it knows none, or why it said nothing. */
type Said = { readonly address: string | undefined } | { readonly reason: string }

async function sentinelFindings(
  urls: readonly string[],
  name: string,
  question: Question,
): Promise<readonly Finding[]> {
  const said = await Promise.all(urls.map((url) => askSentinel(url, name, question)))
  const addresses = new Set(said.flatMap((each) => ('address' in each && each.address ? [each.address] : [])))
  const findings = said.map((each, index) =>
    saidFinding(each, { url: urls[index]!, name, isKnown: addresses.size > 0 }),
  )
  if (addresses.size > 1) {
    const found = `they name different servers: ${[...addresses].join(', ')}`
    findings.push(warning(CHECK, found, 'A failover may be under way: look again. Else they watch different groups.'))
  }
  const [address] = addresses
  if (address === undefined) return findings
  return [...findings, ...(await redisFindings({ ...question, url: serverUrl(urls[0]!, address) }, false))]
}

async function askSentinel(url: string, name: string, { wait }: Question): Promise<Said> {
  const { protocol, hostname, port } = new URL(url)
  // User and password of the address are those of the server, as for the service.
  const place = `${protocol}//${hostname}:${port || SENTINEL_PORT}`
  try {
    const found = await askRedis({ url: place, wait }, (send) => send('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name))
    if (!Array.isArray(found)) return { address: undefined }
    const [host, at] = found.map(String) as [string, string]
    return { address: `${host.includes(':') ? `[${host}]` : host}:${at}` }
  } catch (error) {
    return { reason: reasonOf(error) }
  }
}

function saidFinding(
  said: Said,
  { url, name, isKnown }: { readonly url: string; readonly name: string; readonly isKnown: boolean },
): Finding {
  const place = shownUrl(url)
  if ('reason' in said) {
    const found = `${place} cannot be used (${said.reason})`
    const advice = 'Look whether a sentinel runs there. The others say where the server is, as long as there are some.'
    return isKnown ? warning(CHECK, found, advice) : failed(CHECK, found, advice)
  }
  if (said.address !== undefined) return ok(CHECK, `${place} knows ${name} at ${said.address}`)
  const advice =
    'Name what "sentinel monitor" in its configuration calls it: --redis-sentinel, or SLUICE_REDIS_SENTINEL.'
  return failed(CHECK, `${place} knows no server by the name of ${name}`, advice)
}

/** The address of the server that sentinels name, with user, password and database of the setting. */
function serverUrl(url: string, address: string): string {
  const { protocol, username, password, pathname } = new URL(url)
  const identity = username === '' && password === '' ? '' : `${username}:${password}@`
  return `${protocol}//${identity}${address}${pathname}`
}

const ANSWER_WITHIN_MS = 3000
const OLDEST = [6, 2] as const

/** What the checks of other servers work with. */
export interface ServerQuestion {
  readonly url: string
  readonly nowMs: () => number
  readonly wait: Wait
}

interface Answers {
  /** What the server says about itself, by field. */
  readonly info: ReadonlyMap<string, string>
  readonly beforeMs: number
  readonly thereMs: number
  readonly afterMs: number
}

/** Whether a Redis or Valkey server is there and fit to hold limits; `isCluster`: as one of several that share them. */
async function redisFindings(question: ServerQuestion, isCluster: boolean): Promise<readonly Finding[]> {
  const place = shownUrl(question.url)
  let answers: Answers
  try {
    answers = await askServer(question)
  } catch (error) {
    const advice =
      'Look whether it runs, and whether address, user and password are right. Limits go by their failure mode until then.'
    return [failed('redis', `${place} cannot be used (${reasonOf(error)})`, advice)]
  }
  const { info } = answers
  return [
    versionFinding(info, place),
    isCluster ? clusterFinding(info) : roleFinding(info),
    evictionFinding(info),
    clockFinding('redis clock', answers),
  ]
}

/** Sends a command to one server, and gives its answer. */
type SendCommand = (...command: string[]) => Promise<unknown>

/** What `ask` finds out from the server at an address, which is connected to for that. */
async function askRedis<T>(
  { url, wait }: Pick<ServerQuestion, 'url' | 'wait'>,
  ask: (send: SendCommand) => Promise<T>,
): Promise<T> {
  const { createClient } = await import('redis')
  const client = createClient({ url, socket: { connectTimeout: ANSWER_WITHIN_MS, reconnectStrategy: false } })
  // Failures are told by the calls themselves.
  client.on('error', () => undefined)
  const connected = async (): Promise<T> => {
    await client.connect()
    return await ask((...command) => client.sendCommand(command))
  }
  try {
    return await within(ANSWER_WITHIN_MS, wait, connected())
  } finally {
    client.destroy()
  }
}

function askServer(question: ServerQuestion): Promise<Answers> {
  const { nowMs } = question
  return askRedis(question, async (send) => {
    const info = fieldsOf(String(await send('INFO')))
    const beforeMs = nowMs()
    const [seconds, micros] = (await send('TIME')) as [string, string]
    const afterMs = nowMs()
    return { info, beforeMs, thereMs: Number(seconds) * 1000 + Number(micros) / 1000, afterMs }
  })
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  return new Map(
    info.split('\r\n').flatMap((line): [string, string][] => {
      const colon = line.indexOf(':')
      return colon < 0 || line.startsWith('#') ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
    }),
  )
}

function versionFinding(info: ReadonlyMap<string, string>, place: string): Finding {
  const valkey = info.get('valkey_version')
  if (valkey !== undefined) return ok('redis', `Valkey ${valkey} at ${place}`)
  const version = info.get('redis_version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNewEnough = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
  if (isNewEnough) return ok('redis', `Redis ${version} at ${place}`)
  return failed(
    'redis',
    `Redis ${version} at ${place}, expected ${OLDEST.join('.')} or later, or Valkey`,
    'Upgrade it.',
  )
}

function roleFinding(info: ReadonlyMap<string, string>): Finding {
  if (info.get('cluster_enabled') === '1') {
    return failed('redis role', 'node of a cluster', 'Say so with --redis-cluster, or SLUICE_REDIS_CLUSTER=true.')
  }
  const role = info.get('role') ?? 'unknown'
  if (role !== 'slave') return ok('redis role', role)
  return failed(
    'redis role',
    'replica',
    'Limits are written: name the primary, or let sentinels find it (--redis-sentinel).',
  )
}

/** A replica is as good as a primary to begin with: it tells where the others are. */
function clusterFinding(info: ReadonlyMap<string, string>): Finding {
  if (info.get('cluster_enabled') === '1') return ok('redis role', 'node of a cluster')
  return failed('redis role', 'not a node of a cluster', 'Name nodes of the cluster, or leave --redis-cluster out.')
}

function evictionFinding(info: ReadonlyMap<string, string>): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const check = 'redis eviction'
  if (policy === 'noeviction') return ok(check, policy)
  const advice =
    'Set maxmemory-policy noeviction, and give limits an instance of their own: an evicted counter starts afresh.'
  // Without a limit of its memory nothing is evicted, until somebody sets one.
  if (info.get('maxmemory') === '0') return warning(check, `${policy}, without a limit of memory`, advice)
  return failed(check, policy, advice)
}
