/** What is sent: a command and its arguments. */
export type RedisArgument = string | Buffer

/**
 * A client of Redis, reduced to what the store uses. Adapters translate; they add no waiting, no queue and no second try.
 */
export interface RedisConnection {
  /** The client's name in messages. */
  readonly client: string
  /** Whether the keys of one command must lie in one slot. */
  readonly isCluster: boolean
  /** What the caller's client puts before every key; the store does so itself. Default: nothing. */
  readonly keyPrefix?: string
  /** Whether what is sent is written at the end of the turn of the event loop; at once when left out. */
  readonly writesLater?: boolean
  /** Whether a command would be written now. When not, it is not sent at all: a queue would charge later, for nobody. */
  isReady(): boolean
  /**
   * What is in the way while it is not ready, as far as known: an error of Sluice when only the caller can mend it (a client
   * that nobody connected, a package that is not installed), otherwise the last failure to connect.
   */
  obstacle?(): Error | undefined
  /**
   * Sends one command to the primary that has `key`; an empty key lets the client choose a node. Strings in the reply come as
   * buffers. Rejects with the answer of the server, an error whose message begins with a code in capitals and a space; with an
   * error of Sluice when the client says that it sent nothing; otherwise with the client's error, and the command may have
   * been done.
   */
  send(command: readonly RedisArgument[], key: string): Promise<unknown>
  /** Ends the connection when the store owns it. May be called again. */
  close(): Promise<void>
}
