/** What the core has to know of a request. Every framework makes one of its own. */
export interface HttpRequest {
  /** Such as `GET`. */
  readonly method: string
  /** Path and query as they were received, such as `/orders/7?full=1`. */
  readonly url: string
  /** The pattern of the route that the framework chose, such as `/orders/:id`; undefined when it has not yet, or never tells. */
  readonly route: string | undefined
  /** The address at the other end of the connection; undefined where there is none to be known. */
  readonly peerAddress: string | undefined
  /**
   * A header by its name in lower case: undefined when it was not sent, all of its lines in their order when it was sent more
   * than once and the framework keeps them apart.
   */
  header(name: string): string | readonly string[] | undefined
}
