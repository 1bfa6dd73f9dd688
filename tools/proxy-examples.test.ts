// The example configurations of proxies that no package manager here has: Envoy and Traefik. Their fields are compared
// with those of the published schemas; whether the proxies start with them is not tested.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OPERATIONS } from '@sluice/contract'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { repositoryRoot } from './workspace.ts'

/** A kind of value: a message by its name, `[]` for a list and `{}` for a map of them, or a type of JSON. */
type Kind = string

/** Messages of Envoy's API v3, with those of their fields that the example uses, as the .proto files have them. */
const ENVOY: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  Bootstrap: { static_resources: 'StaticResources' },
  StaticResources: { listeners: 'Listener[]', clusters: 'Cluster[]' },
  Listener: { name: 'string', address: 'Address', filter_chains: 'FilterChain[]' },
  Address: { socket_address: 'SocketAddress' },
  SocketAddress: { address: 'string', port_value: 'number' },
  FilterChain: { filters: 'Filter[]' },
  Filter: { name: 'string', typed_config: 'Any' },
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': {
    stat_prefix: 'string',
    use_remote_address: 'boolean',
    route_config: 'RouteConfiguration',
    http_filters: 'Filter[]',
  },
  RouteConfiguration: { virtual_hosts: 'VirtualHost[]' },
  VirtualHost: { name: 'string', domains: 'string[]', routes: 'Route[]', rate_limits: 'RateLimit[]' },
  Route: { match: 'RouteMatch', route: 'RouteAction' },
  RouteMatch: { prefix: 'string' },
  RouteAction: { cluster: 'string' },
  RateLimit: { actions: 'Action[]' },
  Action: { remote_address: 'Empty' },
  Empty: {},
  'envoy.extensions.filters.http.ratelimit.v3.RateLimit': {
    domain: 'string',
    timeout: 'duration',
    failure_mode_deny: 'boolean',
    rate_limit_service: 'RateLimitServiceConfig',
  },
  RateLimitServiceConfig: { transport_api_version: 'string', grpc_service: 'GrpcService' },
  GrpcService: { envoy_grpc: 'EnvoyGrpc' },
  EnvoyGrpc: { cluster_name: 'string' },
  'envoy.extensions.filters.http.router.v3.Router': {},
  Cluster: {
    name: 'string',
    type: 'string',
    typed_extension_protocol_options: 'Any{}',
    health_checks: 'HealthCheck[]',
    load_assignment: 'ClusterLoadAssignment',
  },
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': { explicit_http_config: 'ExplicitHttpConfig' },
  ExplicitHttpConfig: { http2_protocol_options: 'Empty' },
  HealthCheck: {
    timeout: 'duration',
    interval: 'duration',
    unhealthy_threshold: 'number',
    healthy_threshold: 'number',
    grpc_health_check: 'Empty',
  },
  ClusterLoadAssignment: { cluster_name: 'string', endpoints: 'LocalityLbEndpoints[]' },
  LocalityLbEndpoints: { lb_endpoints: 'LbEndpoint[]' },
  LbEndpoint: { endpoint: 'Endpoint' },
  Endpoint: { address: 'Address' },
}

/** The same of the dynamic configuration of Traefik 3. */
const TRAEFIK: typeof ENVOY = {
  Configuration: { http: 'Http' },
  Http: { middlewares: 'Middleware{}', routers: 'Router{}', services: 'Service{}' },
  Middleware: { forwardAuth: 'ForwardAuth' },
  ForwardAuth: { address: 'string', authResponseHeaders: 'string[]' },
  Router: { rule: 'string', service: 'string', middlewares: 'string[]' },
  Service: { loadBalancer: 'LoadBalancer' },
  LoadBalancer: { servers: 'Server[]' },
  Server: { url: 'string' },
}

/** What does not have the form of `kind`, by its place. */
function problemsOf(messages: typeof ENVOY, value: unknown, kind: Kind, place = ''): readonly string[] {
  const inner = kind.slice(0, -2)
  if (kind.endsWith('[]')) {
    if (!Array.isArray(value)) return [`${place} is no list`]
    return value.flatMap((item, index) => problemsOf(messages, item, inner, `${place}/${index}`))
  }
  if (kind === 'duration') return /^[\d.]+s$/.test(String(value)) ? [] : [`${place} is no duration`]
  const isMessage = !['string', 'number', 'boolean'].includes(kind)
  if (!isMessage) return typeof value === kind ? [] : [`${place} is no ${kind}`]
  if (typeof value !== 'object' || value === null) return [`${place} is no object`]
  if (kind.endsWith('{}')) {
    return Object.entries(value).flatMap(([name, item]) => problemsOf(messages, item, inner, `${place}/${name}`))
  }
  const { '@type': url, ...fields } = value as Readonly<Record<string, unknown>>
  const known = messages[kind === 'Any' ? String(url).replace('type.googleapis.com/', '') : kind]
  if (known === undefined) return [`${place} has the unknown type ${String(url)}`]
  return Object.entries(fields).flatMap(([name, item]) => {
    const of = known[name]
    return of === undefined ? [`${place}/${name} is unknown`] : problemsOf(messages, item, of, `${place}/${name}`)
  })
}

const read = (file: string): string => readFileSync(join(repositoryRoot, 'examples', file), 'utf8')

it.each([
  ['envoy.yaml', ENVOY, 'Bootstrap'],
  ['forward-auth/traefik.yaml', TRAEFIK, 'Configuration'],
] as const)('%s has the fields of its proxy, and what it names is there', (file, messages, kind) => {
  const text = read(file)
  expect(problemsOf(messages, parse(text), kind)).toEqual([])
  const named = [...text.matchAll(/\b(?:cluster|cluster_name|service): (\w+)/g)].map(([, name]) => name!)
  for (const name of named) expect(text).toMatch(new RegExp(`(?:name: ${name}|^ +${name}:)$`, 'm'))
})

it('find a wrong field, a wrong value and an unknown type', () => {
  const text = read('envoy.yaml')
  const wrong = [
    text.replace('stat_prefix', 'stats_prefix'),
    text.replace('timeout: 0.02s', 'timeout: 20ms'),
    text.replace('router.v3.Router', 'router.v4.Router'),
  ]
  for (const changed of wrong) expect(problemsOf(ENVOY, parse(changed), 'Bootstrap')).toHaveLength(1)
})

it('ask the service at its own addresses', () => {
  expect(read('envoy.yaml')).toContain('port_value: 8081')
  expect(read('forward-auth/traefik.yaml')).toContain(`http://127.0.0.1:8080${OPERATIONS.forwardAuth.path}`)
})
