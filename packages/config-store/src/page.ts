/** A part of a longer list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Give it back as `after` for the next page; undefined when this is the last. */
  readonly next: string | undefined
}

/** Which page. */
export interface PageRequest {
  readonly after?: string
  /** Most items, 1 to 1000; 100 when left out. */
  readonly limit?: number
}
