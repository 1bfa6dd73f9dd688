import { createSecureContext } from 'node:tls'
import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { RedisConnection } from '../connection/connection.ts'
import type { RedisAddress } from '../connection/redis-url.ts'
import { readRedisUrl } from '../connection/redis-url.ts'
import type { UrlOptions } from '../connection/url-options.ts'
import type { NodeRedisModule } from './node-redis/node-redis-module.ts'
import { OwnConnection } from './url-connection.ts'

export type { UrlOptions } from '../connection/url-options.ts'

/** {@link UrlOptions}, and where time and chance come from. */
export interface ConnectOptions extends UrlOptions {
  readonly timers?: Timers
  readonly random?: Random
  readonly monotonicMs?: () => number
  /** Loads node-redis. Default: imports the package. */
  readonly load?: () => Promise<NodeRedisModule>
}

/**
 * Connects to the server or servers named by `redis://` or `rediss://` URLs. One server needs nothing else; a cluster, or a primary
 * behind sentinels, needs the package `redis`, which the application installs. Returns at once and never fails for a server that is away: it is tried again after 50 ms, doubling up to half a
 * second, a quarter more or less by chance, for as long as it takes; and likewise whenever the connection is lost. Until it
 * is there, nothing is sent and nothing is kept for later. A connection that has not answered anything for 3 seconds is given
 * up for a new one.
 *
 * The user needs no more than this rule gives, with the prefix of the store in place of `sluice`:
 *
 * `resetkeys ~sluice:* resetchannels -@all +eval +evalsha +time +mget +psetex +setrange +del +pexpire +hset +hdel +hmget
 * +zadd +zrem +zcard +zrange +zrevrange +zrangebyscore +zremrangebyscore`
 *
 * To these come `+select` for a database other than 0, `+cluster|slots +asking` in a cluster. With `+info +config|get` the
 * store can warn of a server that is set up badly for it.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` for a URL that cannot be read, or several that are neither of a cluster nor of
 * sentinels. When the package is needed and not installed, every use of the connection raises it.
 */
export function connectByUrl(target: string | readonly string[], options: ConnectOptions = {}): RedisConnection {
  const { timers = systemTimers, random = systemRandom, monotonicMs = systemMonotonicMs, load } = options
  const addresses = (typeof target === 'string' ? [target] : target).map(readRedisUrl)
  checkKind(addresses, options)
  return new OwnConnection(addresses, { timers, random, monotonicMs, load, reach: options })
}

function checkKind(addresses: readonly RedisAddress[], { cluster = false, sentinel, tls }: UrlOptions): void {
  const complain = (problem: string, expected: string): never => {
    throw new SluiceError('SLUICE_INVALID_OPTION', { problem, expected })
  }
  if (addresses.length === 0) complain('the list of Redis URLs is empty', 'one URL or more')
  if (cluster && sentinel !== undefined) complain('"cluster" and "sentinel" are both given', 'one of them')
  if (addresses.length > 1 && !cluster && sentinel === undefined) {
    complain(
      `${addresses.length} Redis URLs are given, and not what they have to do with each other`,
      '`cluster: true`, or `sentinel: { name }`',
    )
  }
  const [first] = addresses
  const isMixed = addresses.some(
    ({ tls: isSecure, username, password, database }) =>
      isSecure !== first!.tls ||
      username !== first!.username ||
      password !== first!.password ||
      database !== first!.database,
  )
  if (isMixed) complain('the Redis URLs differ in more than host and port', 'one scheme, user, password and database')
  if (cluster && first!.database !== 0) complain('a cluster has only database 0', 'URLs without a database')
  if (tls !== undefined) checkTls(tls)
  if (tls !== undefined && !first!.tls) complain('"tls" is given for a connection without TLS', 'a rediss:// URL')
}

/** A key or certificate that cannot be read would be found out by every try to connect, for ever. */
function checkTls(tls: NonNullable<UrlOptions['tls']>): void {
  try {
    createSecureContext(tls)
  } catch (cause) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: `"tls" of the Redis store cannot be used: ${(cause as Error).message}`,
      expected: '`ca`, `cert` and `key` as the text or bytes of PEM files, and the `passphrase` of the key',
      cause,
    })
  }
}
