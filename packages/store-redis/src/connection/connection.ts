import type { StoreError } from '@sluice/core/internal'
import { storeUnavailable } from '@sluice/core/store'

/** The name of a command, or one of its arguments. */
export type RedisArgument = string | Buffer

/**
 * A Redis client, reduced to what the store uses. Adapters only translate: they never wait, queue or retry.
 */
export interface RedisConnection {
  /** The client's name in messages. */
  readonly client: string
  /** Whether all keys of one command must be in one hash slot. */
  readonly isCluster: boolean
  /** The prefix that the caller's client adds to every key. The store adds it itself. Default: none. */
  readonly keyPrefix?: string
  /** Whether commands are written at the end of the event loop iteration instead of at once. Default: false. */
  readonly writesLater?: boolean
  /**
   * Whether a command would be written now. If not, the store does not send it: a queued command would charge too late.
   */
  isReady(): boolean
  /**
   * Why the connection is not ready, if known. A `SluiceError` when only the caller can fix it (a client that was never
   * connected, a package that is not installed), otherwise the last connection error.
   */
  obstacle?(): Error | undefined
  /**
   * Sends one command to the primary that has `key`. With an empty key the client chooses a node. Strings in the reply
   * are buffers. Rejects with
   * - the server's error reply, an error whose message starts with a code in capitals and a space;
   * - a `SluiceError` when the client reports that it sent nothing;
   * - otherwise the client's error: the command may have been executed.
   */
  send(command: readonly RedisArgument[], key: string): Promise<unknown>
  /** Closes the connection if the store owns it. Can be called again. */
  close(): Promise<void>
}

/** Server errors start with a code in capitals. So do OpenSSL errors, whose code is followed by digits or a colon. */
const SERVER_CODE = /^[A-Z]{3,}(?= |$)/

/** The code of a server's error reply, or undefined when the error is not one. */
export function serverCodeOf(error: unknown): string | undefined {
  // Socket errors and Node errors have a code property.
  if (!(error instanceof Error) || 'code' in error || 'errno' in error) return undefined
  return SERVER_CODE.exec(error.message)?.[0]
}

/** A server's error reply that a client reports in its own words, in the form of the protocol: code, space, text. */
export function serverError(reply: string, cause: unknown): Error {
  return new Error(reply, { cause })
}

/**
 * The error for a command that the client did not write: nothing was executed.
 *
 * @param partial - whether keys on other nodes are not affected
 */
export function notSent(client: string, cause: unknown, partial = false): StoreError {
  return storeUnavailable({
    because: 'unreachable',
    partial,
    problem: `${client} did not send the command: ${messageOf(cause)}`,
    action: 'Sluice reconnects automatically. Check that the server runs and can be reached.',
    cause,
  })
}

function messageOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return cause.message === '' ? cause.constructor.name : cause.message
}
