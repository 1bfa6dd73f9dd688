import { CidrTable, durationMs, IpAddress, METADATA_NETWORKS, parseCidr } from '@sluice/core/internal'
import type { GatewayCheck } from './check-context.ts'
import { checkAuthorities, checkCertificate } from './file-checks.ts'
import { LONGEST_PAUSE_MS, type UpstreamConfig } from './gateway-config.ts'

/** Checks what an upstream means. */
export function checkUpstream(check: GatewayCheck, upstream: UpstreamConfig, path: string): void {
  const { instances, allowAddresses, tls, health } = upstream
  check.networks(`${path}/allowAddresses`, allowAddresses)
  for (const [index, { url }] of instances.entries()) {
    checkInstanceUrl(check, url, `${path}/instances/${index}/url`)
    checkAddress(check, { url, allowed: allowAddresses ?? [] }, `${path}/instances/${index}/url`)
  }
  check.unique(
    instances.map(({ url }, index) => [`${path}/instances/${index}/url`, originOf(url)] as const),
    'a URL that no other instance has; use weight for a larger share',
  )
  checkBalance(check, upstream, path)
  checkConcurrency(check, upstream, path)
  check.duration(`${path}/slowStart`, upstream.slowStart)
  check.duration(`${path}/resolveEvery`, upstream.resolveEvery)
  check.duration(`${path}/health/active/interval`, health?.active?.interval)
  check.duration(`${path}/health/active/timeout`, health?.active?.timeout)
  checkPause(check, health?.passive?.pause, `${path}/health/passive/pause`)
  if (tls === undefined) return
  if (!instances.some(({ url }) => /^https:/i.test(url))) {
    check.add(`${path}/tls`, 'given, and no instance has https://', 'an instance with https://, or no tls')
  }
  if (tls.ca !== undefined) checkAuthorities(check, tls.ca, `${path}/tls/ca`)
  const { cert, key } = tls
  if (cert !== undefined && key !== undefined) checkCertificate(check, { cert, key }, `${path}/tls`)
}

function checkPause(check: GatewayCheck, pause: number | string | undefined, path: string): void {
  const before = check.problems.length
  check.duration(path, pause)
  if (pause === undefined || check.problems.length > before || durationMs(pause, 'pause') <= LONGEST_PAUSE_MS) return
  check.add(path, JSON.stringify(pause), 'a pause of at most 1 minute; use health.active for instances that stay down')
}

function checkInstanceUrl(check: GatewayCheck, text: string, path: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const expected = 'a URL such as "http://10.0.0.7:3000"'
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    check.add(path, JSON.stringify(text), expected)
  } else if (url.username !== '' || url.password !== '') {
    check.add(path, 'a URL with credentials', `${expected}, without credentials; requests carry their own`)
  } else if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || text.endsWith('/')) {
    check.add(path, JSON.stringify(text), `${expected}, without a path; rewrite.addPrefix of a route adds one`)
  }
}

const METADATA = tableOf(METADATA_NETWORKS)

/** An address that names are resolved to is checked when a connection is opened; this one is known already. */
function checkAddress(
  check: GatewayCheck,
  { url, allowed }: { readonly url: string; readonly allowed: readonly string[] },
  path: string,
): void {
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : ''
  const address = new IpAddress()
  if (!address.read(host) || METADATA.findBlock(address) === undefined) return
  if (tableOf(allowed).findBlock(address) !== undefined) return
  const expected = `another address, or "${host}" in allowAddresses: link-local addresses include metadata services`
  check.add(path, JSON.stringify(url), expected)
}

/** Those of the networks that can be used. */
function tableOf(networks: readonly string[]): CidrTable<true> {
  const entries = networks.flatMap((text) => {
    const cidr = parseCidr(text)
    return 'problem' in cidr ? [] : [{ cidr, value: true as const }]
  })
  return new CidrTable(entries)
}

/** What makes two instances the same. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url
}

function checkBalance(check: GatewayCheck, upstream: UpstreamConfig, path: string): void {
  const { balance, hashBy, sessionCookie } = upstream
  if (balance === 'hash' && hashBy === undefined) {
    const expected = '"user", "ip", "session", "header:NAME" or "cookie:NAME", beside "balance: hash"'
    check.add(`${path}/hashBy`, 'missing', expected)
  }
  if (hashBy === 'session' && sessionCookie === undefined) {
    const expected = 'the name of the cookie that holds a session, beside "hashBy: session"'
    check.add(`${path}/sessionCookie`, 'missing', expected)
  }
  if (hashBy !== 'session' && sessionCookie !== undefined) {
    const received = `given beside ${hashBy === undefined ? 'no hashBy' : `"hashBy: ${hashBy}"`}`
    check.add(`${path}/sessionCookie`, received, '"hashBy: session", or no sessionCookie')
  }
  if (balance !== 'hash' && hashBy !== undefined) {
    const received = `given beside ${balance === undefined ? 'no balance' : `"balance: ${balance}"`}`
    check.add(`${path}/hashBy`, received, '"balance: hash", or no hashBy')
  }
}

function checkConcurrency(check: GatewayCheck, { concurrency }: UpstreamConfig, path: string): void {
  if (concurrency === undefined) return
  const { mode = 'off', limit, min, max } = concurrency
  const place = `${path}/concurrency`
  if (mode === 'fixed' && limit === undefined) {
    check.add(`${place}/limit`, 'missing', 'a whole number from 1 to 1000000, beside "mode: fixed"')
  }
  if (mode !== 'fixed' && limit !== undefined) {
    check.add(`${place}/limit`, `given beside "mode: ${mode}"`, '"mode: fixed", or no limit')
  }
  for (const name of ['min', 'max'] as const) {
    if (mode === 'adaptive' || { min, max }[name] === undefined) continue
    check.add(`${place}/${name}`, `given beside "mode: ${mode}"`, `"mode: adaptive", or no ${name}`)
  }
  if (min !== undefined && max !== undefined && min > max) {
    check.add(`${place}/min`, String(min), `at most max, which is ${max}`)
  }
}
