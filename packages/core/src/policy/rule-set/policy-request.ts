/**
 * A request to decide: who calls what. The caller of the engine must have verified every field. Unknown fields are
 * ignored: checking for them would take a tenth of the time of a check.
 */
export interface PolicyRequest {
  /** The resource: the path as received, in any spelling; or a name without a slash. */
  readonly resource: string
  readonly method?: string
  readonly ip?: string
  readonly user?: string
  readonly apiKey?: string
  readonly tenant?: string
  /** Custom dimensions and numbers, by name. */
  readonly descriptors?: Readonly<Record<string, string | number>>
  /** Name of the calling internal service, if it is one; the dimension `service` counts by it. */
  readonly service?: string
  /** Region of the caller, such as `US`; for limits that differ by region. */
  readonly region?: string
  /** The tier of the caller. Default: looked up by identity. */
  readonly tier?: string
  /** Cost of the call in units: whole, 0 or more. Default: 1. */
  readonly cost?: number
}
