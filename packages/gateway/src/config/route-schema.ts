import type { JsonSchema } from '@sluice/core/internal'
import type {
  RetriesConfig,
  RouteConfig,
  RouteMatchConfig,
  RouteTimeoutsConfig,
  TimeoutsConfig,
} from './gateway-config.ts'
import { AUTH_MODES, DEFAULTS } from './gateway-config.ts'
import { choiceSchema, durationSchema, objectSchema, textsSchema } from './object-schema.ts'

type Part<K extends keyof RouteConfig> = NonNullable<RouteConfig[K]>

const hostName: JsonSchema = {
  title: 'a host such as "api.example.com" or "*.example.com", without port',
  examples: ['api.example.com', '*.example.com'],
  type: 'string',
  maxLength: 253,
  pattern: '^(?:\\*\\.)?(?:[A-Za-z0-9_-]{1,63}\\.)*[A-Za-z0-9_-]{1,63}$|^\\[[0-9A-Fa-f:.]+\\]$',
}

const headerName: JsonSchema = {
  title: 'the name of a header such as "x-version"',
  examples: ['x-version'],
  type: 'string',
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
}

const status: JsonSchema = {
  title: 'a status from 100 to 599',
  examples: [401],
  type: 'integer',
  minimum: 100,
  maximum: 599,
}

const statusOrClass: JsonSchema = {
  title: 'a status such as 401, or a class such as "5xx"',
  examples: [401, '5xx'],
  anyOf: [status, { title: 'a class such as "5xx"', examples: ['5xx'], type: 'string', pattern: '^[1-5]xx$' }],
}

const statuses = (description: string, examples: readonly unknown[]): JsonSchema => ({
  description,
  examples,
  type: 'array',
  minItems: 1,
  uniqueItems: true,
  items: { $ref: '#/$defs/statusOrClass' },
})

const routeMatch = objectSchema<RouteMatchConfig>({
  title: 'which requests are meant, such as { path: "/orders/*" }',
  description: 'Which requests take this route; every part that is given must hold. Default: all.',
  examples: [{ path: '/orders/*' }, { hosts: ['api.example.com'], path: '/v2/*', methods: ['GET'] }],
  properties: {
    hosts: textsSchema(
      { $ref: '#/$defs/hostName' },
      {
        description: 'Hosts, without port; *.example.com stands for every name below example.com. Default: any.',
        examples: [['api.example.com'], ['*.example.com']],
      },
    ),
    path: {
      title: 'a path such as "/orders/:id" or "/static/*"',
      description:
        'Path pattern as in rules: :name for any one segment, /* at the end for that and all below. Letters count in ' +
        'any case. Default: any.',
      examples: ['/orders/:id', '/static/*'],
      type: 'string',
      minLength: 1,
      maxLength: 2048,
      pattern: '^/',
    },
    methods: { $ref: '#/$defs/methods', description: 'HTTP methods. GET stands for HEAD too. Default: all.' },
    headers: {
      description: 'Headers that must have these values; "*" for any value. Default: none.',
      examples: [{ 'x-version': '2' }],
      type: 'object',
      propertyNames: { $ref: '#/$defs/headerName' },
      additionalProperties: { title: 'the value of the header, or "*" for any', type: 'string', minLength: 1 },
    },
  },
  required: {},
})

const ROUTE_TIMEOUTS = {
  headers: durationSchema('From the last byte of a request to the headers of its response.', DEFAULTS.headersMs),
  idle: durationSchema('Without a byte in either direction.', DEFAULTS.idleMs),
  total: durationSchema('For the whole exchange. Default: no limit, because streams and events have none.'),
}

const timeouts = objectSchema<TimeoutsConfig>({
  description: 'How long a request may take.',
  examples: [{ connect: '1s', headers: '10s' }],
  properties: {
    connect: durationSchema('To connect to an instance, for all routes.', DEFAULTS.connectMs),
    ...ROUTE_TIMEOUTS,
  },
  required: {},
})

const routeTimeouts = objectSchema<RouteTimeoutsConfig>({
  description: 'Other timeouts for this route. Default: those of gateway.',
  examples: [{ headers: '10s', total: '1m' }],
  properties: ROUTE_TIMEOUTS,
  required: {},
})

const retries = objectSchema<RetriesConfig>({
  description: 'When a request is sent again, to another instance if there is one.',
  examples: [{ attempts: 2 }],
  properties: {
    attempts: {
      description: `Attempts in addition to the first. 0: none. Default: ${DEFAULTS.retryAttempts}.`,
      examples: [2],
      type: 'integer',
      minimum: 0,
      maximum: 10,
      default: DEFAULTS.retryAttempts,
    },
    statuses: {
      description:
        'Statuses that are tried again, of idempotent requests without body. ' +
        `Default: ${DEFAULTS.retryStatuses.join(', ')}.`,
      examples: [[502, 503]],
      type: 'array',
      uniqueItems: true,
      items: { $ref: '#/$defs/status' },
      default: DEFAULTS.retryStatuses,
    },
    budget: {
      description: `Share of the requests of an upstream that may be retries. Default: ${DEFAULTS.retryBudget}.`,
      examples: [0.1],
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: DEFAULTS.retryBudget,
    },
  },
  required: {},
})

const rewrite = objectSchema<Part<'rewrite'>>({
  description: 'What the upstream gets instead of what was requested.',
  examples: [{ stripPrefix: '/api' }],
  properties: {
    stripPrefix: {
      title: 'a path such as "/api"',
      description: 'Removes this prefix from the path. The path pattern of the route must begin with it.',
      examples: ['/api'],
      type: 'string',
      pattern: '^/[^?#*:%\\s]+$',
    },
    addPrefix: {
      title: 'a path such as "/v2"',
      description: 'Puts this prefix before the path, after stripPrefix.',
      examples: ['/v2'],
      type: 'string',
      pattern: '^/[^?#\\s]*[^/?#\\s]$',
    },
    host: {
      title: 'a host such as "internal.example.com"',
      description: 'Replaces the Host of the request. Default: the host of the request.',
      examples: ['internal.example.com'],
      type: 'string',
      pattern: '^[A-Za-z0-9._-]+(?::[0-9]{1,5})?$',
    },
  },
  required: {},
})

const charge = objectSchema<Part<'charge'>>({
  description: 'Which responses are charged. Default: all of them.',
  examples: [{ refund: ['5xx'] }, { only: [401] }],
  properties: {
    refund: statuses('Responses whose charge is given back.', [['5xx'], [304, '5xx']]),
    only: statuses('Only these responses are charged. Instead of refund.', [[401], ['4xx']]),
  },
  required: {},
})

const blockAfter = objectSchema<Part<'blockAfter'>>({
  description: 'Blocks a caller after a number of responses with certain statuses, such as failed logins.',
  examples: [{ responses: 10, within: '1m', blockFor: '15m' }],
  properties: {
    responses: {
      description: 'Number of responses that lead to a block.',
      examples: [10],
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
    },
    within: durationSchema('The time within which they have to come.'),
    blockFor: durationSchema('Length of the block.'),
    statuses: {
      description: `Which statuses count, never 5xx. Default: ${DEFAULTS.blockStatuses.join(' and ')}.`,
      examples: [[401, 403]],
      type: 'array',
      minItems: 1,
      uniqueItems: true,
      items: { $ref: '#/$defs/status' },
      default: DEFAULTS.blockStatuses,
    },
  },
  required: { responses: true, within: true, blockFor: true },
})

const denial = objectSchema<Part<'denial'>>({
  description: 'What a denied request gets. Default: a problem document with status 429.',
  examples: [{ contentType: 'text/html', body: 'file:pages/slow-down.html' }],
  properties: {
    status: {
      title: 'a status from 400 to 599',
      description: `Default: ${DEFAULTS.denialStatus}.`,
      examples: [503],
      type: 'integer',
      minimum: 400,
      maximum: 599,
      default: DEFAULTS.denialStatus,
    },
    contentType: {
      title: 'a media type such as "text/html"',
      description: 'Content-Type of the body. Default: text/plain in UTF-8.',
      examples: ['text/html; charset=utf-8'],
      type: 'string',
      pattern: '^[\\w.+-]+/[\\w.+-]+(?:\\s*;\\s*[\\w.+-]+=(?:[\\w.+-]+|"[^"\\\\\\r\\n]*"))*$',
    },
    body: {
      description:
        'Text, or file: and a path. {retryAfter} becomes the seconds to wait, {rule} the rule that denied. ' +
        'Default: a problem document.',
      examples: ['Try again in {retryAfter} seconds.', 'file:pages/slow-down.html'],
      type: 'string',
      minLength: 1,
    },
  },
  required: {},
})

const webSocket = objectSchema<Part<'webSocket'>>({
  description: 'Limits of what clients send over WebSockets. Default: none.',
  examples: [{ messagesPerSecond: 20, bytesPerSecond: 65_536 }],
  properties: {
    messagesPerSecond: {
      description: 'Messages per second on one connection. Default: no limit.',
      examples: [20],
      type: 'number',
      exclusiveMinimum: 0,
    },
    bytesPerSecond: {
      description: 'Bytes per second on one connection. Default: no limit.',
      examples: [65_536],
      type: 'number',
      exclusiveMinimum: 0,
    },
    burst: {
      description: `How many seconds' worth may come at once. Default: ${DEFAULTS.webSocketBurstSeconds}.`,
      examples: [2],
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 3600,
      default: DEFAULTS.webSocketBurstSeconds,
    },
    messageResource: {
      $ref: '#/$defs/resource',
      description: 'Resource whose rules count messages, over all connections of a caller. Default: none.',
      examples: ['/chat/messages'],
    },
    byteResource: {
      $ref: '#/$defs/resource',
      description: 'Resource whose rules count bytes, over all connections of a caller. Default: none.',
      examples: ['/chat/bytes'],
    },
  },
  required: {},
})

const route = objectSchema<RouteConfig>({
  title: 'a route such as { name: "orders", match: { path: "/orders/*" }, upstream: "shop" }',
  properties: {
    name: {
      $ref: '#/$defs/routeName',
      description: 'Unique; label of metrics and logs.',
    },
    match: { $ref: '#/$defs/routeMatch' },
    upstream: { $ref: '#/$defs/upstreamName', description: 'Where its requests go: a name in upstreams.' },
    rewrite,
    resource: {
      $ref: '#/$defs/resource',
      description: 'What limits call requests of this route. Default: their path.',
    },
    auth: choiceSchema(
      AUTH_MODES,
      'required: a request without a verified identity gets 401. optional: without one it counts by its address. ' +
        'none: credentials are not looked at.',
      DEFAULTS.auth,
    ),
    limits: choiceSchema(['on', 'off'], 'off: nothing is limited here.', 'on'),
    charge,
    blockAfter,
    denial,
    webSocket,
    timeouts: routeTimeouts,
    maxBodyBytes: {
      $ref: '#/$defs/maxBodyBytes',
      description: 'Largest request body. Default: that of gateway.',
    },
    retries: { $ref: '#/$defs/retries' },
    priority: {
      description: `When capacity is short, lower goes first: 0 to 3. Default: ${DEFAULTS.priority}.`,
      examples: [0],
      type: 'integer',
      minimum: 0,
      maximum: 3,
      default: DEFAULTS.priority,
    },
  },
  required: { name: true, match: true, upstream: true },
})

/** Parts of the schema of routes that several places use, and that editors show by name. */
export const ROUTE_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  route,
  routeMatch,
  timeouts,
  retries,
  hostName,
  headerName,
  status,
  statusOrClass,
  routeName: {
    title: 'a name of letters, digits, ".", "_" and "-", at most 64',
    examples: ['orders'],
    type: 'string',
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$',
  },
  maxBodyBytes: {
    title: 'a number of bytes, 0 or more',
    examples: [1_048_576],
    type: 'integer',
    minimum: 0,
  },
}
