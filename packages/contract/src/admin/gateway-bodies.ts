import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { count, flag, instant, listOf, texts, words } from '../schema/value-schemas.ts'

const GATEWAY_ROUTE = answerSchema('GatewayRoute', {
  description: 'A route of the gateway.',
  examples: [
    {
      name: 'orders',
      path: '/orders/*',
      upstream: 'shop',
      auth: 'required',
      limited: true,
      hosts: ['api.example.com'],
      methods: ['GET', 'POST'],
    },
  ],
  required: {
    name: words('Its name.'),
    path: words('Pattern of the paths that it matches; * for all.'),
    upstream: words('Name of the upstream that its requests go to.'),
    auth: {
      description: 'Whether callers need an identity; none: the gateway does not look at credentials.',
      enum: ['required', 'optional', 'none'],
    },
    limited: flag('Whether its requests are limited.'),
  },
  optional: {
    hosts: texts('Hosts that it matches; all when absent.'),
    methods: texts('Methods that it matches; all when absent.'),
    resource: words('What limits call its requests; their path when absent.'),
  },
})
export interface GatewayRoute extends Infer<typeof GATEWAY_ROUTE> {}

const GATEWAY_INSTANCE = answerSchema('GatewayInstance', {
  description: 'An instance of an upstream, over all threads of this node.',
  examples: [
    {
      instance: 'http://10.0.0.7:3000',
      health: 'healthy',
      breaker: 'closed',
      inFlight: 12,
      weight: 1,
      requests: 51_234,
      failures: 3,
    },
  ],
  required: {
    instance: words('Its URL as configured, with the address if the name has several.'),
    health: { description: 'As the worst of the threads sees it.', enum: ['healthy', 'unhealthy'] },
    breaker: {
      description: 'As the worst of the threads sees it. open: it gets no requests.',
      enum: ['closed', 'half-open', 'open'],
    },
    inFlight: count('Requests in flight.'),
    weight: {
      description: 'Its share, relative to the other instances; less than configured during slow start.',
      type: 'number',
      minimum: 0,
    },
    requests: count('Attempts since the start.'),
    failures: count('Those that failed.'),
  },
  optional: {
    concurrencyLimit: count('Requests in flight that it may have; absent without a limit.'),
  },
})
export interface GatewayInstance extends Infer<typeof GATEWAY_INSTANCE> {}

const GATEWAY_UPSTREAM = answerSchema('GatewayUpstream', {
  description: 'An upstream of the gateway.',
  examples: [{ name: 'shop', available: true, instances: [GATEWAY_INSTANCE.example], unresolved: [] }],
  required: {
    name: words('Its name.'),
    available: flag('Whether every thread has an instance that takes requests.'),
    instances: listOf<GatewayInstance>('Its instances, in the order of the configuration.', GATEWAY_INSTANCE.ref),
    unresolved: texts('URLs whose names have no usable address, each with the reason.'),
  },
})
export interface GatewayUpstream extends Infer<typeof GATEWAY_UPSTREAM> {}

const GATEWAY_KEY_SET = answerSchema('GatewayKeySet', {
  description: 'The keys that tokens are verified with.',
  examples: [{ keys: 2, loadedAt: 1_762_337_100_000 }],
  required: { keys: count('Number of keys.') },
  optional: {
    loadedAt: instant('When they were last loaded, by the thread where that is longest ago; absent if never.'),
    problem: words('Why they could not be loaded again; absent if they could.'),
  },
})

export const GATEWAY_ANSWER = answerSchema('GatewayAnswer', {
  description: 'How the gateway of this node stands.',
  examples: [
    {
      mode: 'routes',
      threads: 2,
      routes: [GATEWAY_ROUTE.example],
      upstreams: [GATEWAY_UPSTREAM.example],
      waitingFor: [],
    },
  ],
  required: {
    mode: {
      description: 'off: this node has no gateway. demo: no routes are configured, the demo upstream answers.',
      enum: ['off', 'demo', 'routes'],
    },
    threads: count('Threads that replied.'),
    routes: listOf<GatewayRoute>('The routes, in the order of the configuration.', GATEWAY_ROUTE.ref),
    upstreams: listOf<GatewayUpstream>('The upstreams.', GATEWAY_UPSTREAM.ref),
    waitingFor: texts('Services and upstreams that the gateway waits for.'),
  },
  optional: {
    keySet: GATEWAY_KEY_SET.ref,
    problem: words('Why the configuration in the file is not in use; absent if it is.'),
  },
})
export interface GatewayAnswer extends Infer<typeof GATEWAY_ANSWER> {}
