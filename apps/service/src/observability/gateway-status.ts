import type { GatewayAnswer, GatewayInstance, GatewayUpstream } from '@sluice/contract'
import type { KeySetStats, UpstreamStats } from '@sluice/gateway'

/** How the gateway of one thread stands. */
export interface ThreadGateway extends Pick<GatewayAnswer, 'mode' | 'routes' | 'waitingFor'> {
  readonly upstreams: readonly ThreadUpstream[]
  /** Whether nothing was waited for once. From then on, waiting does not make the node unready. */
  readonly wasReady: boolean
  /** Undefined if no tokens are accepted. */
  readonly keySet: KeySetStats | undefined
  /** Why the configuration in the file is not in use; undefined if it is. */
  readonly problem: string | undefined
}

/** An upstream as one thread sees it. */
export interface ThreadUpstream extends UpstreamStats {
  readonly isAvailable: boolean
}

/** Messages about gateways. */
export interface GatewayMessages {
  /** Undefined if the gateway is off. */
  'gateway.status': () => ThreadGateway | undefined
}

const OFF: GatewayAnswer = { mode: 'off', threads: 0, routes: [], upstreams: [], waitingFor: [] }

/** One answer for all threads: counts are added up, states are the worst of them. */
export function mergedGateway(gateways: readonly ThreadGateway[]): GatewayAnswer {
  const [first] = gateways
  if (first === undefined) return OFF
  const problem = gateways.find((gateway) => gateway.problem !== undefined)?.problem
  const keySet = mergedKeySet(gateways.flatMap((gateway) => gateway.keySet ?? []))
  return {
    mode: first.mode,
    threads: gateways.length,
    routes: first.routes,
    upstreams: first.upstreams.map(({ name }) =>
      mergedUpstream(
        name,
        gateways.map(({ upstreams }) => upstreams.find((each) => each.name === name)).filter(isHere),
      ),
    ),
    waitingFor: [...new Set(gateways.flatMap(({ waitingFor }) => waitingFor))],
    ...(keySet && { keySet }),
    ...(problem !== undefined && { problem }),
  }
}

function isHere<T>(value: T | undefined): value is T {
  return value !== undefined
}

function mergedUpstream(name: string, upstreams: readonly ThreadUpstream[]): GatewayUpstream {
  const names = new Set(upstreams.flatMap(({ instances }) => instances.map(({ instance }) => instance)))
  const all = upstreams.flatMap(({ instances }) => instances)
  return {
    name,
    available: upstreams.every(({ isAvailable }) => isAvailable),
    instances: Array.from(names, (instance) => mergedInstance(all.filter((each) => each.instance === instance))),
    unresolved: [...new Set(upstreams.flatMap((upstream) => upstream.unresolved.map(unresolvedText)))],
  }
}

function unresolvedText({ url, problem }: UpstreamStats['unresolved'][number]): string {
  return `${url}: ${problem}`
}

const HEALTH_ORDER = ['healthy', 'unhealthy'] as const
const BREAKER_ORDER = ['closed', 'half-open', 'open'] as const

/** `seen`: one for each thread, at least one. */
function mergedInstance(seen: readonly UpstreamStats['instances'][number][]): GatewayInstance {
  const { instance, weight } = seen[0]!
  const limits = seen.flatMap(({ concurrencyLimit }) => concurrencyLimit ?? [])
  return {
    instance,
    health: worst(
      HEALTH_ORDER,
      seen.map(({ health }) => health),
    ),
    breaker: worst(
      BREAKER_ORDER,
      seen.map(({ breaker }) => breaker),
    ),
    inFlight: sum(seen.map(({ inFlight }) => inFlight)),
    weight,
    requests: sum(seen.map(({ requests }) => requests)),
    failures: sum(seen.map(({ failures }) => failures)),
    ...(limits.length > 0 && { concurrencyLimit: Math.floor(sum(limits)) }),
  }
}

function worst<T>(order: readonly T[], values: readonly T[]): T {
  return order[Math.max(...values.map((value) => order.indexOf(value)))]!
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function mergedKeySet(keySets: readonly KeySetStats[]): GatewayAnswer['keySet'] {
  const [first] = keySets
  if (first === undefined) return undefined
  const loaded = keySets.map(({ loadedAtMs }) => loadedAtMs)
  const problem = keySets.find((keySet) => keySet.problem !== undefined)?.problem
  return {
    keys: Math.min(...keySets.map(({ keys }) => keys)),
    ...(loaded.every(isHere) && { loadedAt: Math.floor(Math.min(...loaded)) }),
    ...(problem !== undefined && { problem }),
  }
}
