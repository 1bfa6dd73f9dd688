/** The view of a request that the limiter needs. Each adapter provides one. */
export interface HttpRequest {
  /** Such as `GET`. */
  readonly method: string
  /** Path and query as received, such as `/orders/7?full=1`. */
  readonly url: string
  /** Matched route pattern, such as `/orders/:id`. Undefined before routing, or if the framework does not expose it. */
  readonly route: string | undefined
  /** Remote address of the connection. Undefined if unknown. */
  readonly peerAddress: string | undefined
  /**
   * Header by its lower-case name. Undefined if absent; all values in order if it was sent several times and the
   * framework keeps them separate.
   */
  header(name: string): string | readonly string[] | undefined
}
