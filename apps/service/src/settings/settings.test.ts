import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SETTING_NAMES, SETTING_TABLE, settingsHelp } from './setting-table.ts'
import type { Environment, Settings } from './settings.ts'
import { readSettings } from './settings.ts'

function fromEnvironment(environment: Environment): Settings {
  return readSettings({ args: [], environment, cores: 8 })
}

function fromFlags(...args: string[]): Settings {
  return readSettings({ args, environment: {}, cores: 8 })
}

function fromFile(text: string, more: { args?: string[]; environment?: Environment } = {}): Settings {
  const readFile = (path: string): string => {
    if (path === 'sluice.yaml') return text
    throw new Error('no such file')
  }
  const { args = [], environment = {} } = more
  return readSettings({ args: ['--config', 'sluice.yaml', ...args], environment, cores: 8, readFile })
}

const SECRET = `whsec_${'a'.repeat(44)}`

describe('settings', () => {
  it('work with nothing set: port 8080, this machine only, everything embedded', () => {
    const defaults: Settings = {
      host: '127.0.0.1',
      port: 8080,
      httpTls: undefined,
      admin: undefined,
      resp: undefined,
      grpc: undefined,
      gateway: undefined,
      dataDir: '.sluice',
      rulesFile: undefined,
      fileSettings: {},
      redis: undefined,
      databaseUrl: undefined,
      threads: 1,
      maxKeys: 250_000,
      stateSize: 64,
      maxInFlight: 5000,
      maxAdHocLimits: 1000,
      trustedProxies: [],
      forwardAuthIdentity: {},
      defaultLimit: false,
      maxConnectionsPerAddress: 1000,
      allowedHosts: [],
      headers: 'legacy',
      retryJitter: 0,
      checkKey: false,
      adminKeyFile: undefined,
      logLevel: 'warn',
      machine: undefined,
      region: undefined,
      otlpEndpoint: undefined,
      alerts: { options: {}, webhooks: [] },
      blockWebhooks: [],
      webhooks: {
        secrets: [],
        deniedTargets: ['169.254.0.0/16', 'fe80::/10', '100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'],
      },
      drainMs: 3000,
      dashboard: true,
      basePath: '/',
    }
    expect(fromEnvironment({})).toEqual(defaults)
    expect(fromEnvironment({ PORT: '', HOST: '', REDIS_URL: '', SLUICE_THREADS: '' })).toEqual(defaults)
  })

  it('can all be given by the environment', () => {
    expect(
      fromEnvironment({
        HOST: '::1',
        PORT: '0',
        SLUICE_RESP_PORT: '6380',
        SLUICE_RESP_TLS_CERT: 'cert.pem',
        SLUICE_RESP_TLS_KEY: 'key.pem',
        SLUICE_RESP_TLS_CLIENT_CA: 'ca.pem',
        SLUICE_DATA_DIR: '/var/lib/sluice',
        REDIS_URL: 'rediss://:pw@one:6379,rediss://:pw@two:6379',
        SLUICE_REDIS_CLUSTER: '1',
        SLUICE_REDIS_PREFIX: 'blue',
        SLUICE_LEASES: 'true',
        SLUICE_FAILURE_MODE: 'local',
        SLUICE_STORE_DEADLINE_MS: '200',
        DATABASE_URL: 'postgres://u:pw@db/sluice',
        SLUICE_THREADS: 'auto',
        SLUICE_MAX_KEYS: '1000',
        SLUICE_STATE_SIZE: '128',
        SLUICE_GRPC_PORT: '8081',
        SLUICE_GRPC_DEADLINE_MS: '9',
        SLUICE_GRPC_STORE_FAILURE: 'error',
        SLUICE_GRPC_TLS_CERT: 'g.pem',
        SLUICE_GRPC_TLS_KEY: 'g.key',
        SLUICE_GRPC_HOST: '::1',
        SLUICE_RESP_HOST: '::',
        ADMIN_PORT: '9090',
        ADMIN_HOST: '127.0.0.1',
        SLUICE_HTTP_TLS_CERT: 'h.pem',
        SLUICE_HTTP_TLS_KEY: 'h.key',
        SLUICE_HTTP_TLS_CLIENT_CA: 'h-ca.pem',
        SLUICE_GRPC_TLS_CLIENT_CA: 'g-ca.pem',
        SLUICE_MAX_IN_FLIGHT: '20',
        SLUICE_MAX_AD_HOC_LIMITS: '40',
        SLUICE_TRUSTED_PROXIES: '10.0.0.0/8,fd00::/8',
        SLUICE_FORWARD_AUTH_IDENTITY: 'user=X-User,tenant=X-Tenant',
        SLUICE_DEFAULT_LIMIT: 'true',
        SLUICE_MAX_CONNECTIONS_PER_ADDRESS: '30',
        SLUICE_ALLOWED_HOSTS: 'sluice.internal,[fd00::7]',
        SLUICE_HEADERS: 'both',
        SLUICE_RETRY_JITTER: '25',
        SLUICE_CHECK_KEY: 'true',
        SLUICE_ADMIN_KEY_FILE: '/run/secrets/sluice-admin-key',
        SLUICE_LOG_LEVEL: 'debug',
        SLUICE_MACHINE: '1023',
        SLUICE_REGION: 'eu-west-1',
        SLUICE_GATEWAY_PORT: '8000',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
        SLUICE_ALERT_WEBHOOKS: 'https://one.example/a,https://two.example/b',
        SLUICE_BLOCK_WEBHOOKS: 'https://waf.example/one,https://waf.example/two',
        SLUICE_WEBHOOK_SECRET: `${SECRET},whsec_${'b'.repeat(32)}`,
        SLUICE_WEBHOOK_DENY_LIST: '10.0.0.0/8,::1',
        SLUICE_DRAIN_MS: '0',
        SLUICE_DASHBOARD: 'false',
        SLUICE_BASE_PATH: '/limits',
      }),
    ).toEqual({
      host: '::1',
      port: 0,
      httpTls: { cert: 'h.pem', key: 'h.key', clientCa: 'h-ca.pem' },
      admin: { port: 9090, host: '127.0.0.1', checkKey: true },
      resp: { port: 6380, host: '::', checkKey: true, tls: { cert: 'cert.pem', key: 'key.pem', clientCa: 'ca.pem' } },
      grpc: {
        port: 8081,
        host: '::1',
        checkKey: true,
        tls: { cert: 'g.pem', key: 'g.key', clientCa: 'g-ca.pem' },
        deadlineMs: 9,
        storeFailure: 'error',
      },
      gateway: { port: 8000, hasRoutes: false, isTls: false },
      dataDir: '/var/lib/sluice',
      rulesFile: undefined,
      fileSettings: {},
      redis: {
        urls: ['rediss://:pw@one:6379', 'rediss://:pw@two:6379'],
        isCluster: true,
        sentinel: undefined,
        prefix: 'blue',
        leases: true,
        failureMode: 'local',
        deadlineMs: 200,
      },
      databaseUrl: 'postgres://u:pw@db/sluice',
      threads: 8,
      maxKeys: 1000,
      stateSize: 128,
      maxInFlight: 20,
      maxAdHocLimits: 40,
      trustedProxies: ['10.0.0.0/8', 'fd00::/8'],
      forwardAuthIdentity: { user: 'X-User', tenant: 'X-Tenant' },
      defaultLimit: true,
      maxConnectionsPerAddress: 30,
      allowedHosts: ['sluice.internal', '[fd00::7]'],
      headers: 'both',
      retryJitter: 0.25,
      checkKey: true,
      adminKeyFile: '/run/secrets/sluice-admin-key',
      logLevel: 'debug',
      machine: 1023,
      region: 'eu-west-1',
      otlpEndpoint: 'http://127.0.0.1:4318',
      alerts: {
        options: {},
        webhooks: ['https://one.example/a', 'https://two.example/b'],
      },
      blockWebhooks: ['https://waf.example/one', 'https://waf.example/two'],
      webhooks: { secrets: [SECRET, `whsec_${'b'.repeat(32)}`], deniedTargets: ['10.0.0.0/8', '::1'] },
      drainMs: 0,
      dashboard: false,
      basePath: '/limits',
    } satisfies Settings)
  })

  it('can all be given by flags, with = or without', () => {
    expect(fromFlags('--port', '81', '--leases', '--redis-url=redis://h', '--redis-sentinel', 'main')).toMatchObject({
      port: 81,
      redis: {
        leases: true,
        sentinel: 'main',
        urls: ['redis://h'],
        failureMode: 'open',
        prefix: 'sluice',
        deadlineMs: 50,
      },
    })
    expect(fromFlags('--redis-url=redis://h', '--store-deadline-ms=75').redis?.deadlineMs).toBe(75)
    expect(fromFlags('--threads=3', '--check-key')).toMatchObject({ threads: 3, checkKey: true })
  })

  it('are taken from a flag before the environment, and from that before the file', () => {
    const text = 'service: { port: 1, threads: 2, logLevel: error }'
    const settings = fromFile(text, { args: ['--port', '3'], environment: { PORT: '4', SLUICE_THREADS: '5' } })
    expect(settings).toMatchObject({ port: 3, threads: 5, logLevel: 'error', rulesFile: undefined })
  })

  it('of the store deadline are taken in the same order', () => {
    const text = 'service: { redisUrl: "redis://h", storeDeadlineMs: 100 }'
    const environment = { SLUICE_STORE_DEADLINE_MS: '200' }
    const args = ['--store-deadline-ms', '300']
    expect(fromFile(text).redis?.deadlineMs).toBe(100)
    expect(fromFile(text, { environment }).redis?.deadlineMs).toBe(200)
    expect(fromFile(text, { environment, args }).redis?.deadlineMs).toBe(300)
  })

  it('come from the file that the environment names, too', () => {
    const readFile = (): string => '{"service": {"region": "eu"}}'
    expect(readSettings({ args: [], environment: { SLUICE_CONFIG: 'x.json' }, readFile }).region).toBe('eu')
  })
})

describe('listeners', () => {
  it('besides HTTP are off until they have a port', () => {
    expect(fromFlags('--resp-port', '7000').resp).toEqual({ port: 7000, tls: undefined })
    expect(fromFlags('--resp-port', 'off').resp).toBeUndefined()
    expect(fromFlags('--all-listeners').resp?.port).toBe(6380)
    expect(fromFlags('--all-listeners', '--port', '0').resp?.port).toBe(0)
    expect(fromFlags('--all-listeners', '--resp-port', '7000').resp?.port).toBe(7000)
    expect(fromFlags('--all-listeners', '--resp-port', 'off').resp).toBeUndefined()
    expect(fromFlags('--grpc-port', '7001').grpc).toEqual({ port: 7001, tls: undefined, deadlineMs: 15 })
    expect(fromFlags('--all-listeners').grpc?.port).toBe(8081)
    expect(fromFlags('--all-listeners', '--port', '0').grpc?.port).toBe(0)
    expect(fromFlags('--all-listeners', '--grpc-port', 'off').grpc).toBeUndefined()
  })

  it('have a gateway if its port is set, with all listeners, or if the file has routes', () => {
    const routes = 'routes: [{ name: all, match: { path: "/*" }, upstream: app }]'
    expect(fromFlags('--gateway-port', '7002').gateway).toEqual({ port: 7002, hasRoutes: false, isTls: false })
    expect(fromFlags('--gateway-port', '1', '--gateway-host', '::').gateway).toMatchObject({ port: 1, host: '::' })
    expect(fromFlags('--all-listeners').gateway).toEqual({ port: 8000, hasRoutes: false, isTls: false })
    expect(fromFlags('--all-listeners', '--port', '0').gateway?.port).toBe(0)
    expect(fromFlags('--all-listeners', '--gateway-port', 'off').gateway).toBeUndefined()
    expect(fromFile(routes).gateway).toEqual({ port: 8000, hasRoutes: true, isTls: false, file: 'sluice.yaml' })
    expect(fromFile(`rules: []\n${routes}`).gateway).toEqual({ port: 8000, hasRoutes: true, isTls: false })
    expect(fromFile(`service: { port: 0, gatewayPort: 9000 }\n${routes}`).gateway?.port).toBe(9000)
    expect(fromFile(routes, { args: ['--gateway-port', 'off'] }).gateway).toBeUndefined()
    expect(fromFile('rules: []\nroutes: []').gateway).toBeUndefined()
    expect(fromFile(`gateway: { tls: { certificates: [] } }\n${routes}`).gateway?.isTls).toBe(true)
    expect(fromFile(`gateway:\n${routes}`).gateway?.isTls).toBe(false)
  })

  it('have the address of HTTP, or their own, and then the access that fits it', () => {
    const own = fromFlags('--admin-port', '9090', '--resp-port', '1', '--resp-host', '0.0.0.0', '--grpc-port', '2')
    expect(own).toMatchObject({ checkKey: false, resp: { host: '0.0.0.0', checkKey: true } })
    expect(own.admin).toEqual({ port: 9090 })
    expect(own.grpc).toEqual({ port: 2, tls: undefined, deadlineMs: 15 })
    const local = fromFlags('--host', '0.0.0.0', '--admin-port', '9090', '--admin-host', '127.0.0.1')
    expect(local).toMatchObject({ checkKey: true, admin: { host: '127.0.0.1', checkKey: false } })
    expect(fromFlags('--resp-port', '1', '--resp-host', '0.0.0.0', '--no-check-key').resp?.checkKey).toBe(false)
  })

  it.each([
    [['--admin-host', '127.0.0.1'], '--admin-port as well'],
    [['--resp-host', '127.0.0.1'], '--resp-port as well'],
    [['--grpc-port', '1', '--grpc-host', 'http://x'], 'an address or host name'],
    [['--http-tls-cert', 'a'], 'both or neither'],
    [['--http-tls-client-ca', 'a'], 'both with --http-tls-client-ca'],
    [['--resp-port', '65536'], 'a port from 0 to 65535, or off'],
    [['--resp-tls-cert', 'a'], '--resp-port as well'],
    [['--resp-port', '1', '--resp-tls-cert', 'a'], 'both or neither'],
    [['--resp-port', '1', '--resp-tls-client-ca', 'a'], 'both with --resp-tls-client-ca'],
    [['--grpc-port', '65536'], 'a port from 0 to 65535, or off'],
    [['--gateway-port', '65536'], 'a port from 0 to 65535, or off'],
    [['--grpc-deadline-ms', '0'], 'from 1 to 60000'],
    [['--grpc-store-failure', 'deny'], 'mode'],
    [['--grpc-tls-key', 'a'], '--grpc-port as well'],
    [['--grpc-port', '1', '--grpc-tls-client-ca', 'a'], 'both with --grpc-tls-client-ca'],
  ])('reject %s', (args, expected) => {
    expect(() => fromFlags(...args)).toThrow(expected)
  })
})

describe('a configuration file', () => {
  it('says when alerts fire', () => {
    const { alerts } = fromFile('service: { alerts: { denial-rate: { threshold: 0.5 } } }')
    expect(alerts.options).toEqual({ 'denial-rate': { threshold: 0.5 } })
    expect(() => fromFile('service: { alerts: { denial-rate: { threshold: 2 } } }')).toThrow(
      'service.alerts.denial-rate.threshold',
    )
  })

  it('has rules when there is anything in it but settings', () => {
    expect(fromFile('service: { port: 1 }').rulesFile).toBeUndefined()
    expect(fromFile('rules: []').rulesFile).toBe('sluice.yaml')
    expect(fromFile('version: 1\nroutes: []\nupstreams: {}').rulesFile).toBeUndefined()
    expect(fromFile('version: 1').rulesFile).toBe('sluice.yaml')
    expect(fromFile('tiers: []\nroutes: []').rulesFile).toBe('sluice.yaml')
    expect(fromFile('service: { port: 1 }\nrules: []')).toMatchObject({ rulesFile: 'sluice.yaml', port: 1 })
  })

  it('that is not YAML is reported with its line when the rules are loaded', () => {
    expect(fromFile('rules: [').rulesFile).toBe('sluice.yaml')
    expect(fromFile('just a string').rulesFile).toBe('sluice.yaml')
  })

  it.each([
    ['service: { prot: 1 }', 'service.prot an unknown property', 'did you mean "port"'],
    ['service: { port: "8080" }', 'service.port "8080"', 'a whole number from 0 to 65535'],
    ['service: { config: other.yaml }', 'service.config', 'does not refer to another'],
    ['service: [1]', 'with service ', 'an object'],
    ['service: { redisUrl: "http://:secret@h" }', 'service.redisUrl (hidden)', 'redis://'],
  ])('with %s is rejected', (text, received, expected) => {
    expect(() => fromFile(text)).toThrow(
      expect.objectContaining({
        code: 'SLUICE_SERVICE_INVALID_SETTING',
        received: expect.stringContaining(received),
        expected: expect.stringContaining(expected),
      }),
    )
    expect(() => fromFile(text)).not.toThrow('secret')
  })

  it('that cannot be read is named', () => {
    expect(() => readSettings({ args: ['--config=/nowhere/sluice.yaml'], environment: {} })).toThrow(
      '--config /nowhere/sluice.yaml, which cannot be read',
    )
  })
})

describe('a setting', () => {
  it.each([
    ['127.0.0.1', false],
    ['127.8.0.1', false],
    ['::1', false],
    ['0:0:0:0:0:0:0:1', false],
    ['::ffff:127.0.0.1', false],
    ['Localhost', false],
    ['0.0.0.0', true],
    ['::', true],
    ['192.0.2.7', true],
    ['127.example.com', true],
    ['sluice.internal', true],
  ])('on %s the check API requires a key: %s, unless they say otherwise', (host, checkKey) => {
    expect(fromFlags('--host', host).checkKey).toBe(checkKey)
    expect(fromFlags('--host', host, '--no-check-key').checkKey).toBe(false)
    expect(fromFlags('--host', host, '--check-key').checkKey).toBe(true)
    expect(fromEnvironment({ HOST: host, SLUICE_CHECK_KEY: 'false' }).checkKey).toBe(false)
  })

  it.each(['--no-port', '--no-check-keys', '--no-check-key=false'])('do not take %s', (flag) => {
    expect(() => fromFlags(flag)).toThrow(flag.split('=')[0])
  })

  it('say what is wrong with networks of proxies', () => {
    expect(() => fromFlags('--trusted-proxies', '10.0.0.1/8')).toThrow('write 10.0.0.0/8 for the block')
  })

  it.each(['0.0.0.0', '::', '::1', 'fe80::1%eth0', 'localhost', 'node-1.example.com'])('takes host %s', (host) =>
    expect(fromEnvironment({ HOST: host }).host).toBe(host),
  )

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['PORT', '1e3'],
    ['PORT', '0x50'],
    ['PORT', ' 80'],
    ['PORT', '999999999999'],
    ['HOST', 'http://localhost'],
    ['HOST', 'localhost:8080'],
    ['HOST', 'a b'],
    ['HOST', '*'],
    ['HOST', 'host:'],
    ['SLUICE_THREADS', '0'],
    ['SLUICE_THREADS', '65'],
    ['SLUICE_THREADS', 'many'],
    ['SLUICE_HEADERS', 'draft-7'],
    ['SLUICE_CHECK_KEY', 'yes'],
    ['SLUICE_MACHINE', '1024'],
    ['SLUICE_LOG_LEVEL', 'loud'],
    ['SLUICE_REGION', 'a b'],
    ['SLUICE_FAILURE_MODE', 'half-open'],
    ['SLUICE_STORE_DEADLINE_MS', '0'],
    ['SLUICE_STORE_DEADLINE_MS', '60001'],
    ['SLUICE_STORE_DEADLINE_MS', '50ms'],
    ['SLUICE_DATA_DIR', 'a\nb'],
  ])('%s=%j is rejected', (variable, text) => {
    expect(() => fromEnvironment({ [variable]: text })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_SERVICE_INVALID_SETTING',
        received: `${variable}=${JSON.stringify(text)}`,
        expected: expect.stringMatching(new RegExp(`^${variable} to be .`)),
      }),
    )
  })

  it.each([
    ['REDIS_URL', 'http://:hunter2@h'],
    ['DATABASE_URL', 'mysql://u:hunter2@h/d'],
    ['SLUICE_ALERT_WEBHOOKS', 'ftp://u:hunter2@h'],
    ['SLUICE_WEBHOOK_SECRET', 'hunter2'],
    ['SLUICE_WEBHOOK_SECRET', `${SECRET},hunter2`],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://u:hunter2@h'],
  ])('%s that may hold a secret is rejected without being shown', (variable, text) => {
    expect(() => fromEnvironment({ [variable]: text })).toThrow(`${variable}=(hidden)`)
    expect(() => fromEnvironment({ [variable]: text })).not.toThrow('hunter2')
  })

  it.each(['whsec_', `whsec_${'a'.repeat(28)}`, 'a'.repeat(32), `whsec_${'a'.repeat(96)}`, `whsec_${'a'.repeat(33)}`])(
    'a webhook secret that is no 24 to 64 bytes of base64 is rejected: %s',
    (secret) => {
      expect(() => fromEnvironment({ SLUICE_WEBHOOK_SECRET: secret })).toThrow('SLUICE_WEBHOOK_SECRET to be whsec_')
    },
  )

  it('a variable that was renamed is rejected with its new name, not ignored', () => {
    expect(() => fromEnvironment({ SLUICE_ALERT_SECRET: 'a string of the old form' })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_SERVICE_INVALID_SETTING',
        received: 'SLUICE_ALERT_SECRET, which is not read any more',
        expected: 'SLUICE_WEBHOOK_SECRET instead',
      }),
    )
  })

  it('webhooks are not sent to link-local addresses and cloud metadata unless said otherwise', () => {
    const deniedBy = (text?: string): readonly string[] =>
      fromEnvironment({ SLUICE_WEBHOOK_DENY_LIST: text }).webhooks.deniedTargets
    expect(deniedBy()).toEqual(['169.254.0.0/16', 'fe80::/10', '100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'])
    expect(deniedBy('none')).toEqual([])
    expect(() => deniedBy('10.0.0.1/8')).toThrow('10.0.0.1/8 in --webhook-deny-list')
    expect(() => deniedBy('10.0.0.1/8')).toThrow('write 10.0.0.0/8 for the block')
    expect(() => deniedBy('localhost')).toThrow('SLUICE_WEBHOOK_DENY_LIST to be networks such as')
  })

  it('names everything that is wrong at once', () => {
    const read = (): Settings =>
      readSettings({ args: ['--threads', 'x'], environment: { HOST: '*', PORT: 'x' }, cores: 1 })
    expect(read).toThrow('HOST="*" and PORT="x" and --threads="x"')
  })

  it('cannot be a cluster and sentinels at once', () => {
    const redis = ['--redis-url', 'redis://h']
    expect(() => fromFlags(...redis, '--redis-cluster', '--redis-sentinel', 'main')).toThrow('one of them')
  })

  it.each([
    [['--redis-cluster'], '--redis-cluster'],
    [['--redis-sentinel', 'main'], '--redis-sentinel'],
    [['--redis-prefix', 'shop', '--leases'], '--redis-prefix, --leases'],
    [['--store-deadline-ms', '200'], '--store-deadline-ms'],
  ])('of Redis cannot be %j without its address', (flags, named) => {
    expect(() => fromFlags(...flags)).toThrow(`${named} without --redis-url`)
    expect(() => fromFlags(...flags)).toThrow('--redis-url as well')
  })

  it('of Redis may be false, and the failure mode may be set, without Redis', () => {
    const environment = { SLUICE_REDIS_CLUSTER: 'false', SLUICE_LEASES: '0', SLUICE_FAILURE_MODE: 'closed' }
    expect(readSettings({ args: [], environment, cores: 1 }).redis).toBeUndefined()
  })
})

describe('a flag', () => {
  it.each([
    ['--prot', 'the unknown flag --prot', 'did you mean --port?'],
    ['--data-dri=x', 'the unknown flag --data-dri', 'did you mean --data-dir?'],
    ['--xyzzy', 'the unknown flag --xyzzy', '--help lists'],
    ['serve', '"serve"', 'only flags'],
  ])('%s is rejected', (flag, received, expected) => {
    expect(() => fromFlags(flag)).toThrow(
      expect.objectContaining({ received, expected: expect.stringContaining(expected) }),
    )
  })

  it('without the value it needs is rejected', () => {
    expect(() => fromFlags('--port')).toThrow('--port without a value')
    expect(() => fromFlags('--port', '--leases')).toThrow(/--port/)
  })

  it('of any kind, with any string, is read or rejected with the code (property)', () => {
    const anyFlag = fc.oneof(
      fc.constantFrom(...SETTING_NAMES.map((name) => `--${SETTING_TABLE[name].flag}`)),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(anyFlag, fc.string()), { maxLength: 6 }), (args) => {
        try {
          readSettings({ args, environment: {}, cores: 2, readFile: () => '{}' })
        } catch (error) {
          expect(error).toMatchObject({ code: 'SLUICE_SERVICE_INVALID_SETTING' })
        }
      }),
    )
  })
})

describe('the help', () => {
  it('names every setting by flag, variable and place in the file', () => {
    const help = settingsHelp()
    for (const name of SETTING_NAMES) {
      const { flag, variable } = SETTING_TABLE[name]
      expect(help).toContain(`--${flag}`)
      expect(help).toContain(`Environment: ${variable}. File: service.${name}`)
    }
  })
})
