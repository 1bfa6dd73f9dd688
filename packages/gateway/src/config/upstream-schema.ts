import type { JsonSchema } from '@sluice/core/internal'
import type { InstanceConfig, UpstreamConfig } from './gateway-config.ts'
import { BALANCINGS, CONCURRENCY_MODES, DEFAULTS, MOST_FAILURES } from './gateway-config.ts'
import { choiceSchema, durationSchema, fileSchema, objectSchema, textsSchema } from './object-schema.ts'

type Part<K extends keyof UpstreamConfig> = NonNullable<UpstreamConfig[K]>
type Health<K extends keyof Part<'health'>> = NonNullable<Part<'health'>[K]>

const count = (description: string, preset?: number): JsonSchema => ({
  description: preset === undefined ? description : `${description} Default: ${preset}.`,
  examples: [preset ?? 100],
  type: 'integer',
  minimum: 1,
  maximum: 1_000_000,
  ...(preset === undefined ? {} : { default: preset }),
})

const instance = objectSchema<InstanceConfig>({
  title: 'an instance such as { url: "http://10.0.0.7:3000" }',
  properties: {
    url: {
      title: 'http:// or https://, a host and a port, without a path',
      description: 'http:// or https://, a host and a port, without path, query and credentials.',
      examples: ['http://10.0.0.7:3000', 'https://shop.internal'],
      type: 'string',
      minLength: 1,
    },
    weight: {
      description: `Share of the requests, beside the weights of the others. Default: ${DEFAULTS.weight}.`,
      examples: [2],
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 1000,
      default: DEFAULTS.weight,
    },
  },
  required: { url: true },
})

const activeHealth = objectSchema<Health<'active'>>({
  description: 'Requests of the gateway that find out whether an instance is healthy. Default: none.',
  examples: [{ path: '/health', interval: '5s' }],
  properties: {
    path: {
      title: 'a path such as "/health"',
      description: 'What is requested; 2xx is healthy.',
      examples: ['/health'],
      type: 'string',
      pattern: '^/[^\\s#]*$',
    },
    interval: durationSchema('Time between two checks.', DEFAULTS.healthIntervalMs),
    timeout: durationSchema('How long a check may take.', DEFAULTS.healthTimeoutMs),
    healthyAfter: count('Good checks after which an instance is healthy again.', DEFAULTS.healthyAfter),
    unhealthyAfter: count('Failed checks after which an instance is unhealthy.', DEFAULTS.unhealthyAfter),
  },
  required: { path: true },
})

const passiveHealth = objectSchema<Health<'passive'>>({
  description: 'Requests that fail pause an instance.',
  examples: [{ failures: 5, pause: '1s' }],
  properties: {
    failures: {
      ...count('Failures in a row after which an instance is paused.', DEFAULTS.passiveFailures),
      maximum: MOST_FAILURES,
    },
    pause: durationSchema(
      'How long it gets no requests at first; up to ten times as long later, at most 1 minute.',
      DEFAULTS.passivePauseMs,
    ),
  },
  required: {},
})

const upstream = objectSchema<UpstreamConfig>({
  title: 'an upstream such as { instances: [{ url: "http://10.0.0.7:3000" }] }',
  properties: {
    instances: {
      description: 'The servers.',
      examples: [[{ url: 'http://10.0.0.7:3000' }, { url: 'http://10.0.0.8:3000' }]],
      type: 'array',
      minItems: 1,
      items: { $ref: '#/$defs/instance' },
    },
    balance: choiceSchema(BALANCINGS, 'Which instance gets a request. hash needs hashBy.', DEFAULTS.balance),
    hashBy: {
      title: '"user", "ip", "session", "header:NAME" or "cookie:NAME"',
      description:
        'With balance hash: requests with the same value go to the same instance. session is the cookie that ' +
        'sessionCookie names. The address decides for requests without a value.',
      examples: ['user', 'cookie:session'],
      type: 'string',
      pattern: "^(?:user|ip|session|(?:header|cookie):[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})$",
    },
    sessionCookie: {
      title: 'the name of a cookie such as "JSESSIONID"',
      description: 'With hashBy session: the name of the cookie that holds a session.',
      examples: ['JSESSIONID'],
      type: 'string',
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
    },
    protocol: choiceSchema(['http1', 'http2'], 'http2 is for gRPC.', 'http1'),
    tls: objectSchema<Part<'tls'>>({
      description: 'TLS to instances with https. Certificates are always verified.',
      examples: [{ ca: 'certs/internal-ca.pem' }],
      properties: {
        ca: fileSchema('File with the certificates of authorities. Default: those of the system.', 'certs/ca.pem'),
        serverName: {
          description: 'Name that the certificate must have. Default: the host of the instance.',
          examples: ['shop.internal'],
          type: 'string',
          minLength: 1,
        },
        cert: fileSchema('File with the certificate that the gateway shows. Default: none.', 'certs/client.pem'),
        key: fileSchema('File with its key.', 'certs/client-key.pem'),
      },
      required: {},
      dependentRequired: { cert: ['key'], key: ['cert'] },
    }),
    health: objectSchema<Part<'health'>>({
      description: 'How the gateway finds out which instances can take requests.',
      examples: [{ active: { path: '/health' } }],
      properties: { active: activeHealth, passive: passiveHealth },
      required: {},
    }),
    slowStart: durationSchema(
      'Time in which a new or recovered instance goes from a tenth of its weight to all of it. Default: none.',
    ),
    concurrency: objectSchema<Part<'concurrency'>>({
      description: 'How many requests an instance may have in flight. Above it requests get 503 with Retry-After.',
      examples: [{ mode: 'adaptive' }, { mode: 'fixed', limit: 100 }],
      properties: {
        mode: choiceSchema(CONCURRENCY_MODES, 'adaptive finds the limit by latency.', DEFAULTS.concurrencyMode),
        limit: count('With fixed: the limit.'),
        min: count('With adaptive: never below it.', DEFAULTS.concurrencyMin),
        max: count('With adaptive: never above it.', DEFAULTS.concurrencyMax),
      },
      required: {},
    }),
    connections: count('Connections to each instance.', DEFAULTS.connections),
    allowAddresses: textsSchema(
      { title: 'an address or block such as "169.254.1.0/24"', type: 'string', minLength: 1 },
      {
        description: 'Link-local and metadata addresses that are allowed all the same. Default: none.',
        examples: [['169.254.1.7']],
      },
    ),
    resolveEvery: durationSchema('How often names are resolved again.', DEFAULTS.resolveEveryMs),
  },
  required: { instances: true },
})

/** Parts of the schema of upstreams. */
export const UPSTREAM_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  upstream,
  instance,
  upstreamName: {
    title: 'a name of letters, digits, ".", "_" and "-", at most 64',
    examples: ['shop'],
    type: 'string',
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$',
  },
}
