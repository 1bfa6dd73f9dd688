import { type JsonSchema, RULE_SET_FILE_SCHEMA } from '@sluice/core/internal'
import type {
  ConsumerConfig,
  GatewayConfig,
  GatewayOptionsConfig,
  IdentityHeadersConfig,
  JwtConfig,
  StartupServiceConfig,
  TlsConfig,
} from './gateway-config.ts'
import { ACCESS_LOGS, DEFAULTS, TOKEN_ALGORITHMS } from './gateway-config.ts'
import { choiceSchema, fileSchema, objectSchema, textsSchema } from './object-schema.ts'
import { ROUTE_SCHEMAS } from './route-schema.ts'
import { UPSTREAM_SCHEMAS } from './upstream-schema.ts'

const networks = (description: string): JsonSchema =>
  textsSchema(
    { title: 'an address or block such as "10.0.0.0/8"', type: 'string', minLength: 1 },
    { description: `${description} Default: none.`, examples: [['10.0.0.0/8']] },
  )

const text = (description: string, example: string): JsonSchema => ({
  description,
  examples: [example],
  type: 'string',
  minLength: 1,
})

const HEADER_NAME: JsonSchema = {
  title: 'the name of a header such as "X-API-Key"',
  type: 'string',
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$",
}

const headerName = (description: string, usual: string): JsonSchema => ({
  ...HEADER_NAME,
  description: `${description} Default: ${usual}.`,
  examples: [usual],
  default: usual,
})

const tls = objectSchema<TlsConfig>({
  description: 'TLS for clients. Files are read again when they change. Default: none, plain HTTP.',
  examples: [{ certificates: [{ cert: 'certs/site.pem', key: 'certs/site-key.pem' }] }],
  properties: {
    certificates: {
      description: 'The first one is used for names that no other has.',
      examples: [[{ cert: 'certs/site.pem', key: 'certs/site-key.pem' }]],
      type: 'array',
      minItems: 1,
      items: { $ref: '#/$defs/certificate' },
    },
  },
  required: { certificates: true },
})

const certificate = objectSchema<TlsConfig['certificates'][number]>({
  title: 'a certificate such as { cert: "certs/site.pem", key: "certs/site-key.pem" }',
  properties: {
    cert: fileSchema('File with the certificate and its chain, in PEM.', 'certs/site.pem'),
    key: fileSchema('File with its private key, in PEM.', 'certs/site-key.pem'),
    names: textsSchema(
      { $ref: '#/$defs/hostName' },
      {
        description: 'Names that it is used for. Default: those in the certificate.',
        examples: [['api.example.com', '*.example.com']],
      },
    ),
  },
  required: { cert: true, key: true },
})

const consumer = objectSchema<ConsumerConfig>({
  title: 'a consumer such as { name: "acme", keys: ["sha256:..."] }',
  properties: {
    name: text('Becomes the user of its requests. Unique.', 'acme'),
    keys: textsSchema(
      {
        title: '"sha256:" and 64 hexadecimal digits',
        examples: [`sha256:${'0'.repeat(64)}`],
        type: 'string',
        pattern: '^sha256:[0-9a-f]{64}$',
      },
      { description: 'SHA-256 of its keys, never the keys.', examples: [[`sha256:${'0'.repeat(64)}`]] },
    ),
    tier: text('Its tier. Default: what members say.', 'premium'),
    tenant: text('Its tenant. Default: none.', 'acme'),
  },
  required: { name: true, keys: true },
})

const jwt = objectSchema<JwtConfig>({
  description: 'JSON Web Tokens that callers may show. Default: none are accepted.',
  examples: [{ jwks: 'https://login.example.com/.well-known/jwks.json', issuer: 'https://login.example.com/' }],
  properties: {
    jwks: text('URL or path of a JSON Web Key Set.', 'https://login.example.com/.well-known/jwks.json'),
    issuer: text('What the claim iss must be. Default: anything.', 'https://login.example.com/'),
    audience: {
      description: 'What the claim aud must be, or one of several. Default: anything.',
      examples: ['api', ['api', 'admin']],
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', minItems: 1, uniqueItems: true, items: { type: 'string', minLength: 1 } },
      ],
    },
    algorithms: textsSchema(
      { title: 'a signature with a public key', enum: TOKEN_ALGORITHMS },
      { description: 'Accepted algorithms. Default: those that the key set names.', examples: [['RS256', 'ES256']] },
    ),
    claims: objectSchema<NonNullable<JwtConfig['claims']>>({
      description: 'Which claims hold what.',
      examples: [{ user: 'sub', tenant: 'org', tier: 'plan' }],
      properties: {
        user: { ...text('The user. Default: sub.', 'sub'), default: 'sub' },
        tenant: text('The tenant. Default: none.', 'org'),
        tier: text('The tier. Default: none.', 'plan'),
      },
      required: {},
    }),
  },
  required: { jwks: true },
})

const startupService = objectSchema<StartupServiceConfig>({
  title: 'a service such as { url: "http://127.0.0.1:3000/health" }',
  properties: {
    url: {
      title: 'http://, https:// or tcp:// and a host and port',
      description: 'An HTTP URL that must answer with 2xx, or tcp://host:port that must accept a connection.',
      examples: ['http://127.0.0.1:3000/health', 'tcp://127.0.0.1:5432'],
      type: 'string',
      minLength: 1,
    },
    dependsOn: textsSchema(
      { type: 'string', minLength: 1 },
      {
        description: 'Names of services that must be available before. Default: none.',
        examples: [['database']],
      },
    ),
  },
  required: { url: true },
})

const options = objectSchema<GatewayOptionsConfig>({
  description: 'Settings of the gateway as a whole.',
  examples: [{ trustedProxies: ['10.0.0.0/8'], accessLog: 'json' }],
  properties: {
    trustedProxies: networks('Networks of proxies whose forwarding header is believed.'),
    forwardedHeader: headerName(
      'The header that these proxies write: X-Forwarded-For, Forwarded, or one with a single address.',
      'X-Forwarded-For',
    ),
    proxyProtocolFrom: networks('Networks that must start each connection with a PROXY protocol header.'),
    tls,
    accessLog: choiceSchema(ACCESS_LOGS, 'One line for each request.', DEFAULTS.accessLog),
    timeouts: { $ref: '#/$defs/timeouts' },
    maxBodyBytes: {
      $ref: '#/$defs/maxBodyBytes',
      description: 'Largest request body. Default: 10 MiB.',
      default: DEFAULTS.maxBodyBytes,
    },
    healthPaths: {
      description:
        'Paths that the gateway answers itself, without limits: 200 while it can serve, else 503. A path that ends ' +
        `in /livez says 200 while the gateway runs. Default: ${DEFAULTS.healthPaths.join(' and ')}.`,
      examples: [DEFAULTS.healthPaths],
      type: 'array',
      uniqueItems: true,
      items: { title: 'a path such as "/livez"', examples: ['/livez'], type: 'string', pattern: '^/[^?#*:%\\s]*$' },
      default: DEFAULTS.healthPaths,
    },
    consumers: {
      description: 'Callers with a key. Default: none.',
      examples: [[{ name: 'acme', keys: [`sha256:${'0'.repeat(64)}`] }]],
      type: 'array',
      items: { $ref: '#/$defs/consumer' },
    },
    keyHeaders: textsSchema(HEADER_NAME, {
      description: 'Headers that keys of consumers are read from. Default: Authorization and X-API-Key.',
      examples: [['X-API-Key']],
    }),
    jwt,
    identityHeaders: objectSchema<IdentityHeadersConfig>({
      description: 'Headers that tell upstreams who calls. Clients cannot set them.',
      examples: [{ user: 'X-Account' }],
      properties: {
        user: headerName('The user.', DEFAULTS.identityHeaders.user),
        tenant: headerName('The tenant.', DEFAULTS.identityHeaders.tenant),
        tier: headerName('The tier.', DEFAULTS.identityHeaders.tier),
        apiKey: headerName('Fingerprint of the key.', DEFAULTS.identityHeaders.apiKey),
      },
      required: {},
    }),
    services: {
      description: 'Services that must be available before the gateway is ready, by name. Default: none.',
      examples: [{ shop: { url: 'http://127.0.0.1:3000/health' } }],
      type: 'object',
      additionalProperties: { $ref: '#/$defs/startupService' },
    },
  },
  required: {},
})

/** The parts of a configuration file that describe the gateway. Editors read them from the published schema. */
export const GATEWAY_PARTS: { readonly [K in keyof GatewayConfig]-?: JsonSchema } = {
  gateway: options,
  routes: {
    description:
      'Which requests are passed on, and where to. The most specific route holds (by host, then path, methods, ' +
      'headers), then the first.',
    examples: [[{ name: 'orders', match: { path: '/orders/*' }, upstream: 'shop' }]],
    type: 'array',
    items: { $ref: '#/$defs/route' },
  },
  upstreams: {
    description: 'The servers behind the gateway, by name.',
    examples: [{ shop: { instances: [{ url: 'http://127.0.0.1:3000' }] } }],
    type: 'object',
    propertyNames: { $ref: '#/$defs/upstreamName' },
    additionalProperties: { $ref: '#/$defs/upstream' },
  },
}

/** What the parts refer to. */
export const GATEWAY_DEFINITIONS: Readonly<Record<string, JsonSchema>> = {
  ...ROUTE_SCHEMAS,
  ...UPSTREAM_SCHEMAS,
  certificate,
  consumer,
  startupService,
}

/** The parts of the gateway alone. Durations, methods and resources are those of rules. */
export const GATEWAY_SCHEMA: JsonSchema = {
  type: 'object',
  properties: GATEWAY_PARTS,
  additionalProperties: false,
  $defs: { ...RULE_SET_FILE_SCHEMA.$defs, ...GATEWAY_DEFINITIONS },
}
