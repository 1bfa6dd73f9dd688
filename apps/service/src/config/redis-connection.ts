import type { DocumentTable } from '@sluice/config-store'
import type { Sleep } from '@sluice/runtime'
import type { RedisSettings } from '../settings/settings.ts'

/** A connection to Redis for everything except counters. */
export interface RedisConnection {
  /** Runs a script on one key. Rejects at once without a connection. */
  run(script: string, key: string, args: readonly string[]): Promise<unknown>
  close(): Promise<void>
}

/** The common part of node-redis clients for one server, a cluster and sentinels. */
interface Client {
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  eval(script: string, options: { readonly keys: string[]; readonly arguments: string[] }): Promise<unknown>
  destroy(): unknown
}

const CONNECT_TIMEOUT_MS = 1000
const LONGEST_RETRY_MS = 2000

/**
 * Connects to the Redis of the settings. Resolves when connected, or after a short wait; then it keeps retrying in the
 * background.
 */
export async function connectRedis(settings: RedisSettings, sleep: Sleep): Promise<RedisConnection> {
  const client = await createClientFor(settings)
  // Calls report errors themselves; an event without a listener would end the process.
  client.on('error', () => undefined)
  const connecting = client.connect().catch(() => undefined)
  const connected = new AbortController()
  await Promise.race([connecting, sleep(CONNECT_TIMEOUT_MS, connected.signal).catch(() => undefined)])
  connected.abort()
  return {
    run: (script, key, args) => client.eval(script, { keys: [key], arguments: [...args] }),
    async close() {
      client.destroy()
      await connecting
    },
  }
}

async function loadRedis(): Promise<typeof import('redis')> {
  const module = await import('redis')
  // Bundlers that split their output may leave the names of a CommonJS package on its default export alone.
  return 'createClient' in module ? module : (module as { readonly default: typeof import('redis') }).default
}

async function createClientFor({ urls, isCluster, sentinel }: RedisSettings): Promise<Client> {
  const { createClient, createCluster, createSentinel } = await loadRedis()
  const socket = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectStrategy: (tries: number) => Math.min(50 * 2 ** tries, LONGEST_RETRY_MS),
  }
  const common = { disableOfflineQueue: true, socket }
  if (isCluster) {
    return createCluster({ rootNodes: urls.map((url) => ({ url })), defaults: common }) as unknown as Client
  }
  if (sentinel !== undefined) {
    const places = urls.map((url) => new URL(url))
    return createSentinel({
      name: sentinel,
      sentinelRootNodes: places.map(({ hostname, port }) => ({ host: hostname, port: Number(port) || 26_379 })),
      nodeClientOptions: { ...common, ...identityOf(places[0]!) },
      sentinelClientOptions: common,
    }) as unknown as Client
  }
  return createClient({ ...common, url: urls[0]! }) as unknown as Client
}

function identityOf({ username, password }: URL): { username?: string; password?: string } {
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  }
}

/** A document expires this long after its last change. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000

/** A document is one string: revision, line feed, body. Uses only commands that the counters need as well. */
const GET = "return redis.call('MGET', KEYS[1])[1]"

/** ARGV: expected revision, body, time to live in milliseconds. Returns 1; 0 if the stored revision is another one. */
const PUT = `
local there = redis.call('MGET', KEYS[1])[1]
local revision = there and string.match(there, '^%d+') or '0'
if revision ~= ARGV[1] then return 0 end
redis.call('PSETEX', KEYS[1], ARGV[3], string.format('%d', ARGV[1] + 1) .. '\\n' .. ARGV[2])
return 1
`

/** Documents in Redis, shared by all nodes with the same prefix. */
export function redisDocuments(link: RedisConnection, prefix: string): DocumentTable {
  const keyOf = (name: string): string => `${prefix}:document:${name}`
  return {
    async get(name) {
      const text = await link.run(GET, keyOf(name), [])
      if (typeof text !== 'string') return undefined
      const end = text.indexOf('\n')
      return { revision: Number(text.slice(0, end)), body: text.slice(end + 1) }
    },
    async put(name, body, revision) {
      return (await link.run(PUT, keyOf(name), [String(revision), body, String(KEPT_MS)])) === 1
    },
  }
}
