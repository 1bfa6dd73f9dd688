import type { ConnectionOptions } from 'node:tls'
import { SluiceError } from '@sluice/core'

/** How to reach the server of a Redis URL. */
export interface UrlOptions {
  /** The URLs are nodes of one cluster. One running node is enough to find the others. Default: false. */
  readonly cluster?: boolean
  /**
   * The URLs are sentinels, and `name` is the primary they monitor. User, password and database in the URLs are those
   * of the primary. Credentials of the sentinels, if any, go here.
   */
  readonly sentinel?: { readonly name: string; readonly username?: string; readonly password?: string }
  /** TLS options for `rediss://`: trusted certificates and the client certificate. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'passphrase' | 'rejectUnauthorized' | 'servername'>
}

/** A parsed Redis URL. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

const SCHEMES: Readonly<Record<string, { readonly tls: boolean }>> = {
  'redis:': { tls: false },
  'rediss:': { tls: true },
  'valkey:': { tls: false },
  'valkeys:': { tls: true },
}

const DEFAULT_PORT = 6379
const EXPECTED = 'redis://[[user]:password@]host[:port][/database], or rediss:// for TLS'

/**
 * Parses a Redis URL. Messages never contain the password.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION`
 */
export function readRedisUrl(text: string): RedisAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const scheme = url === undefined ? undefined : SCHEMES[url.protocol]
  if (url === undefined || scheme === undefined || url.hostname === '') throw badUrl('cannot be read', shown(url))
  const database = url.pathname.length > 1 ? Number(url.pathname.slice(1)) : 0
  if (!Number.isSafeInteger(database) || database < 0) throw badUrl('names no database', shown(url))
  return {
    // IPv6 addresses are in brackets.
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    tls: scheme.tls,
    username: decode(url, 'username'),
    password: decode(url, 'password'),
    database,
  }
}

function decode(url: URL, part: 'username' | 'password'): string | undefined {
  if (url[part] === '') return undefined
  try {
    return decodeURIComponent(url[part])
  } catch (cause) {
    throw badUrl(`has a ${part} with a % that begins no percent-encoding`, shown(url), cause)
  }
}

/** The URL without credentials. A URL that cannot be parsed is not shown at all. */
function shown(url: URL | undefined): string | undefined {
  return url === undefined ? undefined : `${url.protocol}//${url.host}${url.pathname}`
}

function badUrl(problem: string, received: string | undefined, cause?: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `a Redis URL ${problem}`,
    ...(received !== undefined && { received }),
    expected: EXPECTED,
    action: 'Percent-encode characters such as @, : and / in a password.',
    cause,
  })
}
