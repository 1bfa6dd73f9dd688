import type { GatewayAnswer, GatewayRoute, GatewayUpstream } from '@sluice/contract'

/** An upstream with the routes that lead to it. */
export interface Flow {
  readonly name: string
  readonly routes: readonly GatewayRoute[]
  /** Undefined when routes name an upstream that does not exist. */
  readonly upstream: GatewayUpstream | undefined
}

/** The flows of a gateway, in the order of the routes; upstreams that no route leads to come last. */
export function flowsOf({ routes, upstreams }: Pick<GatewayAnswer, 'routes' | 'upstreams'>): readonly Flow[] {
  const names = new Set([...routes.map(({ upstream }) => upstream), ...upstreams.map(({ name }) => name)])
  return [...names].map((name) => ({
    name,
    routes: routes.filter(({ upstream }) => upstream === name),
    upstream: upstreams.find((upstream) => upstream.name === name),
  }))
}
