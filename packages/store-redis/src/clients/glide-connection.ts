import { notSent, serverAnswer } from '../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'

/** Where a command of a cluster goes. */
type Route = { readonly type: 'primarySlotKey'; readonly key: string } | 'randomNode'

/** What is used of a `GlideClient` or `GlideClusterClient` of valkey-glide, version 2 and later. */
export interface GlideClient {
  customCommand(command: RedisArgument[], options: { readonly decoder: 0; readonly route?: Route }): Promise<unknown>
}

/** `Decoder.Bytes`. */
const BYTES = 0

/**
 * A client of valkey-glide as a connection. It keeps its own connection and does not tell how that is, so it counts as ready
 * until it is closed; while the server is away a command fails after the client's `requestTimeout`. In a cluster it follows
 * MOVED and ASK by itself, and commands go to the primary of their key. After TRYAGAIN, READONLY and CLUSTERDOWN it waits
 * for a second or more, which is longer than its usual `requestTimeout`; and with another `readFrom` than `primary` it takes
 * quarter of a minute to notice a fail-over in good order. So give the store a client with the default `readFrom`.
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

/** What valkey-glide calls the answers that it knows. */
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

const KNOWN_ANSWER = /^An error was signalled by the server: - (\w+): (.*)$/s
const OTHER_ANSWER = /^([A-Z]{3,}): (.*)$/s

const NOT_WRITTEN = /^(?:Unable to execute requests; the client is closed|Reached maximum inflight requests)/

function translate(error: unknown): unknown {
  const message = error instanceof Error ? error.message : ''
  if (NOT_WRITTEN.test(message)) return notSent('valkey-glide', error)
  const [, name = '', text = ''] = KNOWN_ANSWER.exec(message) ?? OTHER_ANSWER.exec(message) ?? []
  if (name === '') return error
  return serverAnswer(`${CODES[name] ?? name.toUpperCase()} ${text}`, error)
}
