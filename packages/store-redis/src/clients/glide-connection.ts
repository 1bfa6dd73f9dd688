import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { notSent, serverError } from '../connection/connection.ts'

/** The node of a cluster that a command goes to. */
type Route = { readonly type: 'primarySlotKey'; readonly key: string } | 'randomNode'

/** The part of a `GlideClient` or `GlideClusterClient` that is used, valkey-glide 2 and later. */
export interface GlideClient {
  customCommand(command: RedisArgument[], options: { readonly decoder: 0; readonly route?: Route }): Promise<unknown>
}

/** `Decoder.Bytes`. */
const BYTES = 0

/**
 * Adapts a client of valkey-glide. The client does not report the state of its connection, so it counts as ready until
 * it is closed. While the server is unreachable, a command fails after the client's `requestTimeout`. In a cluster the
 * client follows MOVED and ASK, and commands go to the primary of their key. After TRYAGAIN, READONLY and CLUSTERDOWN
 * it waits for a second or more, which is longer than its default `requestTimeout`. With a `readFrom` other than
 * `primary` it takes 15 seconds to notice a planned failover, so pass a client with the default `readFrom`.
 */
export function glideConnection(client: GlideClient, isCluster: boolean): RedisConnection {
  let isClosed = false
  return {
    client: isCluster ? 'valkey-glide cluster' : 'valkey-glide',
    isCluster,
    isReady: () => !isClosed,
    async send(command, key) {
      try {
        return await client.customCommand(
          [...command],
          isCluster ? { decoder: BYTES, route: routeTo(key) } : { decoder: BYTES },
        )
      } catch (error) {
        isClosed ||= error instanceof Error && error.name === 'ClosingError'
        throw translate(error)
      }
    },
    close: () => Promise.resolve(),
  }
}

function routeTo(key: string): Route {
  return key === '' ? 'randomNode' : { type: 'primarySlotKey', key }
}

/** The server codes behind the error names of valkey-glide. */
const CODES: Readonly<Record<string, string>> = {
  Ask: 'ASK',
  BusyLoadingError: 'LOADING',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  ExecAbortError: 'EXECABORT',
  MasterDown: 'MASTERDOWN',
  Moved: 'MOVED',
  NoScriptError: 'NOSCRIPT',
  PermissionDenied: 'NOPERM',
  ReadOnly: 'READONLY',
  ResponseError: 'ERR',
  TryAgain: 'TRYAGAIN',
}

const KNOWN_ERROR = /^An error was signalled by the server: - (\w+): (.*)$/s
const OTHER_ERROR = /^([A-Z]{3,}): (.*)$/s

const NOT_WRITTEN = /^(?:Unable to execute requests; the client is closed|Reached maximum inflight requests)/

function translate(error: unknown): unknown {
  const message = error instanceof Error ? error.message : ''
  if (NOT_WRITTEN.test(message)) return notSent('valkey-glide', error)
  const [, name = '', text = ''] = KNOWN_ERROR.exec(message) ?? OTHER_ERROR.exec(message) ?? []
  if (name === '') return error
  return serverError(`${CODES[name] ?? name.toUpperCase()} ${text}`, error)
}
