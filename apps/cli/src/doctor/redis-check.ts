import { urlWithoutSecrets } from '@sluice/core/options'
import type { RedisSettings } from '@sluice/service/settings'
import { reasonText } from '../output/text.ts'
import type { ServerCheckOptions } from './clock-check.ts'
import { clockFinding, within } from './clock-check.ts'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

type CheckOptions = Omit<ServerCheckOptions, 'url'>

const SENTINEL_PORT = '26379'
const CHECK = 'redis sentinel'

/** Checks the Redis of a service: the servers in its settings, or the server that its sentinels report. */
export async function redisFindings(redis: RedisSettings, options: CheckOptions): Promise<readonly Finding[]> {
  const { urls, isCluster, sentinel } = redis
  if (sentinel !== undefined) return await sentinelFindings(urls, sentinel, options)
  const findings: Finding[] = []
  for (const url of urls) findings.push(...(await redisServerFindings({ ...options, url }, isCluster)))
  return findings
}

/** What a sentinel reports: the address of the primary, none, or why the sentinel is unavailable. */
type SentinelReport = { readonly address: string | undefined } | { readonly reason: string }

async function sentinelFindings(
  urls: readonly string[],
  name: string,
  options: CheckOptions,
): Promise<readonly Finding[]> {
  const reports = await Promise.all(urls.map((url) => querySentinel(url, name, options)))
  const addresses = new Set(reports.flatMap((each) => ('address' in each && each.address ? [each.address] : [])))
  const findings = reports.map((each, index) =>
    reportFinding(each, { url: urls[index]!, name, isKnown: addresses.size > 0 }),
  )
  if (addresses.size > 1) {
    const found = `they report different servers: ${[...addresses].join(', ')}`
    findings.push(
      warning(CHECK, found, 'A failover may be in progress: run this again. Otherwise they monitor different groups.'),
    )
  }
  const [address] = addresses
  if (address === undefined) return findings
  return [...findings, ...(await redisServerFindings({ ...options, url: serverUrl(urls[0]!, address) }, false))]
}

async function querySentinel(url: string, name: string, { wait }: CheckOptions): Promise<SentinelReport> {
  const { protocol, hostname, port } = new URL(url)
  // User and password belong to the Redis server, not to the sentinel; the service does the same.
  const place = `${protocol}//${hostname}:${port || SENTINEL_PORT}`
  try {
    const found = await queryRedis({ url: place, wait }, (send) => send('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name))
    if (!Array.isArray(found)) return { address: undefined }
    const [host, at] = found.map(String) as [string, string]
    return { address: `${host.includes(':') ? `[${host}]` : host}:${at}` }
  } catch (error) {
    return { reason: reasonText(error) }
  }
}

function reportFinding(
  report: SentinelReport,
  { url, name, isKnown }: { readonly url: string; readonly name: string; readonly isKnown: boolean },
): Finding {
  const place = urlWithoutSecrets(url)
  if ('reason' in report) {
    const found = `${place} is not usable (${report.reason})`
    const advice = 'Check that a sentinel runs there. Until then the service depends on the other sentinels.'
    return isKnown ? warning(CHECK, found, advice) : failed(CHECK, found, advice)
  }
  if (report.address !== undefined) return ok(CHECK, `${place} knows ${name} at ${report.address}`)
  const advice = 'Set --redis-sentinel or SLUICE_REDIS_SENTINEL to the name in "sentinel monitor" of its configuration.'
  return failed(CHECK, `${place} does not know ${name}`, advice)
}

/** URL of the server that sentinels report, with user, password and database of the setting. */
function serverUrl(url: string, address: string): string {
  const { protocol, username, password, pathname } = new URL(url)
  const identity = username === '' && password === '' ? '' : `${username}:${password}@`
  return `${protocol}//${identity}${address}${pathname}`
}

const TIMEOUT_MS = 3000
const OLDEST = [6, 2] as const

interface Answers {
  /** Fields of `INFO`. */
  readonly info: ReadonlyMap<string, string>
  readonly beforeMs: number
  readonly thereMs: number
  readonly afterMs: number
}

/** Checks that a Redis or Valkey server can hold counters. `isCluster`: it must be a node of a cluster. */
async function redisServerFindings(options: ServerCheckOptions, isCluster: boolean): Promise<readonly Finding[]> {
  const place = urlWithoutSecrets(options.url)
  let answers: Answers
  try {
    answers = await queryServer(options)
  } catch (error) {
    const advice =
      'Check that it runs and that address, user and password are correct. Until then rules use their failure mode.'
    return [failed('redis', `${place} is not usable (${reasonText(error)})`, advice)]
  }
  const { info } = answers
  return [
    versionFinding(info, place),
    isCluster ? clusterFinding(info) : roleFinding(info),
    evictionFinding(info),
    clockFinding('redis clock', answers),
  ]
}

/** Sends a command to a server. */
type SendCommand = (...command: string[]) => Promise<unknown>

/** Connects to a server, runs `ask`, and disconnects. */
async function queryRedis<T>(
  { url, wait }: Pick<ServerCheckOptions, 'url' | 'wait'>,
  ask: (send: SendCommand) => Promise<T>,
): Promise<T> {
  const { createClient } = await import('redis')
  const client = createClient({ url, socket: { connectTimeout: TIMEOUT_MS, reconnectStrategy: false } })
  // Calls report failures themselves.
  client.on('error', () => undefined)
  const connected = async (): Promise<T> => {
    await client.connect()
    return await ask((...command) => client.sendCommand(command))
  }
  try {
    return await within(TIMEOUT_MS, wait, connected())
  } finally {
    client.destroy()
  }
}

function queryServer(options: ServerCheckOptions): Promise<Answers> {
  const { nowMs } = options
  return queryRedis(options, async (send) => {
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
    return failed('redis role', 'node of a cluster', 'Set --redis-cluster or SLUICE_REDIS_CLUSTER=true.')
  }
  const role = info.get('role') ?? 'unknown'
  if (role !== 'slave') return ok('redis role', role)
  return failed(
    'redis role',
    'replica',
    'Counters are written: use the primary, or let sentinels find it (--redis-sentinel).',
  )
}

/** A replica is as good as a primary here: it reports the topology. */
function clusterFinding(info: ReadonlyMap<string, string>): Finding {
  if (info.get('cluster_enabled') === '1') return ok('redis role', 'node of a cluster')
  return failed(
    'redis role',
    'not a node of a cluster',
    'Use the addresses of cluster nodes, or remove --redis-cluster.',
  )
}

function evictionFinding(info: ReadonlyMap<string, string>): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const check = 'redis eviction'
  if (policy === 'noeviction') return ok(check, policy)
  const advice = 'Set maxmemory-policy noeviction and use a dedicated instance: an evicted counter restarts at zero.'
  // Without maxmemory nothing is evicted.
  if (info.get('maxmemory') === '0') return warning(check, `${policy}, without maxmemory`, advice)
  return failed(check, policy, advice)
}
