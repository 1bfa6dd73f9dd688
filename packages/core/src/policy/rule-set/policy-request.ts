/** A request that limits are decided for: who calls what. Everything in it must have been verified by whoever asks. */
export interface PolicyRequest {
  /** What is called: the path as it came, in any spelling; or a name without a slash. */
  readonly resource: string
  readonly method?: string
  readonly ip?: string
  readonly user?: string
  readonly apiKey?: string
  readonly tenant?: string
  /** Further dimensions and numbers, by name. */
  readonly descriptors?: Readonly<Record<string, string | number>>
  /** Name of the internal service that calls, when it is one; the dimension `service` counts by it. */
  readonly service?: string
  /** Where it comes from, such as `US`; for limits that differ by region. */
  readonly region?: string
  /** The tier of the caller, when whoever asks knows it; else it is looked up. */
  readonly tier?: string
  /** Units the call takes: whole, 0 or more. Default: 1. */
  readonly cost?: number
}
