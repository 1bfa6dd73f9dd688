/** Choices of the configuration, each in the order in which messages list them. */
export const ACCESS_LOGS = ['off', 'json', 'combined'] as const
export const AUTH_MODES = ['required', 'optional', 'none'] as const
export const BALANCINGS = ['round-robin', 'least-connections', 'hash'] as const
export const CONCURRENCY_MODES = ['off', 'adaptive', 'fixed'] as const
/** Signatures that a public key verifies. With `HS256`, anyone who knows the public key could sign. */
export const TOKEN_ALGORITHMS: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** What the breaker of an instance takes at most. */
export const LONGEST_PAUSE_MS = 60_000
export const MOST_FAILURES = 1000

/** What holds where the configuration says nothing. Durations in milliseconds. */
export const DEFAULTS = {
  accessLog: 'off',
  maxBodyBytes: 10_485_760,
  healthPaths: ['/livez', '/readyz'],
  identityHeaders: { user: 'X-User-Id', tenant: 'X-Tenant-Id', tier: 'X-Tier', apiKey: 'X-Api-Key-Id' },
  connectMs: 2000,
  headersMs: 30_000,
  idleMs: 60_000,
  auth: 'optional',
  blockStatuses: [401, 403],
  denialStatus: 429,
  webSocketBurstSeconds: 1,
  retryAttempts: 1,
  retryStatuses: [502, 503, 504],
  retryBudget: 0.2,
  priority: 1,
  balance: 'round-robin',
  concurrencyMode: 'off',
  connections: 128,
  resolveEveryMs: 10_000,
  healthIntervalMs: 5000,
  healthTimeoutMs: 2000,
  healthyAfter: 2,
  unhealthyAfter: 3,
  passiveFailures: 5,
  passivePauseMs: 1000,
  concurrencyMin: 4,
  concurrencyMax: 1000,
  weight: 1,
} as const

/** The parts of a configuration file that describe the gateway, as they are written. */
export interface GatewayConfig {
  /** Settings of all routes. */
  readonly gateway?: GatewayOptionsConfig
  /** In order of writing; the most specific route wins, then the first. */
  readonly routes?: readonly RouteConfig[]
  /** By name. */
  readonly upstreams?: Readonly<Record<string, UpstreamConfig>>
}

/** Settings of the gateway as a whole. */
export interface GatewayOptionsConfig {
  /** Networks of proxies whose forwarding header is believed. Default: none. */
  readonly trustedProxies?: readonly string[]
  /**
   * The header that these proxies write: `X-Forwarded-For`, `Forwarded`, or one with a single address. Others are
   * ignored, because proxies pass them through. Default: `X-Forwarded-For`.
   */
  readonly forwardedHeader?: string
  /** Networks that must start each connection with a PROXY protocol header. Default: none. */
  readonly proxyProtocolFrom?: readonly string[]
  readonly tls?: TlsConfig
  /** Default: `off`. */
  readonly accessLog?: (typeof ACCESS_LOGS)[number]
  readonly timeouts?: TimeoutsConfig
  /** Largest request body. Default: 10 MiB. */
  readonly maxBodyBytes?: number
  /**
   * Paths that the gateway answers itself, without limits: liveness and readiness. Default: `/livez` and `/readyz`.
   */
  readonly healthPaths?: readonly string[]
  readonly consumers?: readonly ConsumerConfig[]
  /** Headers that keys of consumers are read from. Default: `Authorization` and `X-API-Key`. */
  readonly keyHeaders?: readonly string[]
  readonly jwt?: JwtConfig
  /** Headers that tell upstreams who calls. Clients cannot set them. */
  readonly identityHeaders?: IdentityHeadersConfig
  /** Services that must be available before the gateway is ready, by name. */
  readonly services?: Readonly<Record<string, StartupServiceConfig>>
}

export interface TlsConfig {
  /** The first one is used for names that no other has. */
  readonly certificates: readonly {
    readonly cert: string
    readonly key: string
    /** Names such as `api.example.com` or `*.example.com`. Default: those in the certificate. */
    readonly names?: readonly string[]
  }[]
}

/** All in milliseconds or as text such as `5s`. */
export interface TimeoutsConfig extends RouteTimeoutsConfig {
  /** To connect to an instance. Default: 2 s. Not of one route: connections are those of all routes. */
  readonly connect?: number | string
}

/** All in milliseconds or as text such as `5s`. */
export interface RouteTimeoutsConfig {
  /** From the last byte of a request to the headers of its response. Default: 30 s. */
  readonly headers?: number | string
  /** Without a byte in either direction. Default: 60 s. */
  readonly idle?: number | string
  /** For the whole exchange. Default: no limit, because streams and events have none. */
  readonly total?: number | string
}

/** A caller with a key. The key itself is never written: only its hash. */
export interface ConsumerConfig {
  /** Becomes the `user` of requests. */
  readonly name: string
  /** `sha256:` and 64 hexadecimal digits of the key. */
  readonly keys: readonly string[]
  readonly tier?: string
  readonly tenant?: string
}

/** Names of the headers that tell upstreams who calls. */
export interface IdentityHeadersConfig {
  /** Default: `X-User-Id`. */
  readonly user?: string
  /** Default: `X-Tenant-Id`. */
  readonly tenant?: string
  /** Default: `X-Tier`. */
  readonly tier?: string
  /** Fingerprint of the key. Default: `X-Api-Key-Id`. */
  readonly apiKey?: string
}

export interface JwtConfig {
  /** URL or path of a JSON Web Key Set. */
  readonly jwks: string
  readonly issuer?: string
  readonly audience?: string | readonly string[]
  /** Default: those that the key set names, never `none`. */
  readonly algorithms?: readonly string[]
  /** Which claims hold what. Default: `sub` is the user. */
  readonly claims?: { readonly user?: string; readonly tenant?: string; readonly tier?: string }
}

export interface StartupServiceConfig {
  /** An HTTP URL that must answer with 2xx, or `tcp://host:port`. */
  readonly url: string
  readonly dependsOn?: readonly string[]
}

export interface RouteConfig {
  /** Unique; label of metrics and resource of limits unless `resource` says another. */
  readonly name: string
  readonly match: RouteMatchConfig
  readonly upstream: string
  readonly rewrite?: {
    /** Removes this prefix from the path. */
    readonly stripPrefix?: string
    /** Puts this prefix before the path. */
    readonly addPrefix?: string
    /** Replaces the `Host` of the request. Default: the host of the request. */
    readonly host?: string
  }
  /** What limits call this request. Default: its path. */
  readonly resource?: string
  /** `required`: requests without a verified identity are answered with 401. Default: `optional`. */
  readonly auth?: (typeof AUTH_MODES)[number]
  /** `off`: nothing is limited here, such as for internal services that have their own limits. */
  readonly limits?: 'on' | 'off'
  readonly charge?: {
    /** Statuses or classes such as `5xx` whose charge is given back. */
    readonly refund?: readonly (number | string)[]
    /** Only these statuses are charged; excludes `refund`. */
    readonly only?: readonly (number | string)[]
  }
  readonly blockAfter?: {
    readonly responses: number
    readonly within: number | string
    readonly blockFor: number | string
    /** Default: 401 and 403. Never 5xx. */
    readonly statuses?: readonly number[]
  }
  readonly denial?: {
    /** Default: 429. */
    readonly status?: number
    readonly contentType?: string
    /** Text, or `file:` and a path. `{retryAfter}` and `{rule}` are replaced. */
    readonly body?: string
  }
  readonly webSocket?: {
    readonly messagesPerSecond?: number
    readonly bytesPerSecond?: number
    /** How much may come at once. Default: one second's worth. */
    readonly burst?: number
    /** Resource whose rules count messages, over all connections of a caller. Default: none. */
    readonly messageResource?: string
    /** Resource whose rules count bytes. Default: none. */
    readonly byteResource?: string
  }
  readonly timeouts?: RouteTimeoutsConfig
  readonly maxBodyBytes?: number
  readonly retries?: RetriesConfig
  /** Of this traffic when capacity is short: lower goes first. 0 to 3. Default: 1. */
  readonly priority?: number
}

export interface RouteMatchConfig {
  /** Names such as `api.example.com` or `*.example.com`. Default: any. */
  readonly hosts?: readonly string[]
  /** Path pattern, as in rules: `/orders/:id`, `/static/*`. */
  readonly path?: string
  readonly methods?: readonly string[]
  /** Headers that must have these values; `*` for any value. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface RetriesConfig {
  /** In addition to the first attempt. Default: 1. */
  readonly attempts?: number
  /** Statuses of idempotent requests without body that are tried again. Default: 502, 503, 504. */
  readonly statuses?: readonly number[]
  /** Share of requests of an upstream that may be retries. Default: 0.2. */
  readonly budget?: number
}

export interface UpstreamConfig {
  readonly instances: readonly InstanceConfig[]
  /** Default: `round-robin`. */
  readonly balance?: (typeof BALANCINGS)[number]
  /** With `hash`: by what. `header:NAME` and `cookie:NAME` name it; `session` is the cookie `sessionCookie`. */
  readonly hashBy?: string
  /** Name of the cookie that holds a session. */
  readonly sessionCookie?: string
  readonly protocol?: 'http1' | 'http2'
  readonly tls?: {
    /** File with the certificates of authorities. Default: those of the system. */
    readonly ca?: string
    /** Default: the host of the instance. */
    readonly serverName?: string
    readonly cert?: string
    readonly key?: string
  }
  readonly health?: {
    readonly active?: {
      readonly path: string
      readonly interval?: number | string
      readonly timeout?: number | string
      readonly healthyAfter?: number
      readonly unhealthyAfter?: number
    }
    readonly passive?: { readonly failures?: number; readonly pause?: number | string }
  }
  /** Time in which a new or recovered instance goes from a tenth of its weight to all of it. Default: 0. */
  readonly slowStart?: number | string
  readonly concurrency?: {
    /** `adaptive` finds the limit by latency. Default: `off`. */
    readonly mode?: (typeof CONCURRENCY_MODES)[number]
    readonly limit?: number
    readonly min?: number
    readonly max?: number
  }
  /** Connections to each instance. Default: 128. */
  readonly connections?: number
  /** Link-local and metadata addresses that are allowed all the same. */
  readonly allowAddresses?: readonly string[]
  /** How often names are resolved again. Default: 10 s. */
  readonly resolveEvery?: number | string
}

export interface InstanceConfig {
  /** `http://host:port` or `https://host:port`, without a path. */
  readonly url: string
  /** Default: 1. */
  readonly weight?: number
}
