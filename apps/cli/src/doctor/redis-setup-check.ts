import type { RedisSettings } from '@sluice/service/settings'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'
import type { ServerQuestion } from './redis-check.ts'
import { askRedis, redisFindings } from './redis-check.ts'
import { reasonOf, shownUrl } from './shown-url.ts'

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
