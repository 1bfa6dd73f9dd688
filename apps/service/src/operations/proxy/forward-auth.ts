import type { IncomingHttpHeaders } from 'node:http'
import type { FieldProblem } from '@sluice/contract'
import { parseCheckRequest } from '@sluice/contract'
import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'
import { LOOPBACK_NETWORKS } from '../../address-network.ts'
import type { ServiceContext } from '../../service-context.ts'
import { DecisionAnswers, NO_RULES, policyRequestOf } from '../check/check.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { thenMaybe } from '../handler.ts'
import { invalidRequestAnswer } from '../problems.ts'

/** What forward authentication works with. */
export type ForwardAuthContext = Pick<
  ServiceContext,
  'settings' | 'engine' | 'follower' | 'clock' | 'nextId' | 'random'
>

/**
 * Decides for reverse proxies about the requests that they are about to pass on. What a request says about itself comes
 * from headers that the proxy sets, so only trusted proxies may ask.
 */
export function forwardAuthHandlers(context: ForwardAuthContext): OperationHandlers<'forwardAuth'> {
  const { settings, engine, follower, clock, nextId, random } = context
  const { headers: profile, retryJitter } = settings
  const answers = new DecisionAnswers({ clock, nextId, random, profile, retryJitter })
  const proxies = new TrustedProxies(settings.trustedProxies)
  return {
    forwardAuth: ({ headers, parameters, remoteAddress }) => {
      if (!follower.hasRules) return NO_RULES
      if (!proxies.includes(remoteAddress)) return invalid(NOT_TRUSTED)
      const uri = oneOf(headers, 'x-forwarded-uri')
      const ip = proxies.clientOf(oneOf(headers, 'x-forwarded-for') ?? '')
      if (uri === undefined || ip === undefined) return invalid(uri === undefined ? NO_URI : NO_CLIENT)
      const parsed = parseCheckRequest({
        resource: pathOf(uri),
        method: oneOf(headers, 'x-forwarded-method') ?? 'GET',
        ip,
        ...identityIn(headers, settings.forwardAuthIdentity),
      })
      if (!parsed.ok) return invalidRequestAnswer(parsed)
      return thenMaybe(engine.check(policyRequestOf(parsed.request, settings.region)), (decision): Answer => {
        const answer = answers.tell(decision)
        return decision.allowed ? answer : { ...answer, status: parameters.denyStatus }
      })
    },
  }
}

const NOT_TRUSTED: FieldProblem = {
  path: '',
  received: 'a request from an address that is no trusted proxy',
  expected: 'the proxy to be in --trusted-proxies',
}
const NO_URI: FieldProblem = {
  path: '',
  received: 'no X-Forwarded-Uri header',
  expected: 'the path of the original request in X-Forwarded-Uri, set by the proxy',
}
const NO_CLIENT: FieldProblem = {
  path: '',
  received: 'no address in X-Forwarded-For',
  expected: 'the address of the client in X-Forwarded-For, set or extended by the proxy',
}

function invalid(problem: FieldProblem): Answer {
  return invalidRequestAnswer({ problems: [problem] })
}

/** A header by its name in lower case; undefined if it is missing or empty. */
function oneOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  const text = Array.isArray(value) ? value.join(', ') : value
  return text === '' ? undefined : text
}

/** The fields whose headers are there. */
function identityIn(
  headers: IncomingHttpHeaders,
  names: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const found = Object.entries(names).map(([field, name]) => [field, oneOf(headers, name.toLowerCase())] as const)
  return Object.fromEntries(found.filter((entry): entry is readonly [string, string] => entry[1] !== undefined))
}

function pathOf(uri: string): string {
  const end = uri.search(/[?#]/)
  return end < 0 ? uri : uri.slice(0, end)
}

/** This machine, and the networks of the settings. */
class TrustedProxies {
  readonly #networks: CidrTable<true>

  constructor(networks: readonly string[]) {
    // The settings were checked when they were read.
    const all = [...LOOPBACK_NETWORKS, ...networks]
    this.#networks = new CidrTable(all.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true })))
  }

  includes(address: string): boolean {
    const parsed = parseIp(address)
    return parsed !== undefined && this.#networks.find(parsed).length > 0
  }

  /**
   * The last address that is not of a trusted proxy: every proxy appends the address that it saw, and everything before
   * the first trusted one was written by the client. The first address if all are trusted; undefined if there is none.
   */
  clientOf(forwardedFor: string): string | undefined {
    const entries = forwardedFor.split(',').map(withoutPort)
    const client = entries.findLast((entry) => !this.includes(entry)) ?? entries[0]
    return client === undefined || parseIp(client) === undefined ? undefined : client
  }
}

const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/

/** An entry of `X-Forwarded-For` without the port that some proxies add. */
function withoutPort(entry: string): string {
  const [, ipv6, ipv4] = WITH_PORT.exec(entry.trim()) ?? []
  return ipv6 ?? ipv4 ?? entry.trim()
}
