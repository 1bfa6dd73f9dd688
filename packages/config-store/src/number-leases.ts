/** Which numbers there are, and who wants one. */
export interface NumberLeaseRequest {
  /** What the numbers are for, such as `machine`. */
  readonly name: string
  /** Numbers from 0 to one less than this. */
  readonly count: number
  /** Who wants it: unique to the process. */
  readonly holder: string
  /** How long it is kept without being renewed, in milliseconds. */
  readonly leaseMs: number
  /** The one to have when it is free, such as the one it had before. Any that is free when left out. */
  readonly wanted?: number
  /** Whether no other than `wanted` will do. */
  readonly onlyWanted?: boolean
}

/** Small numbers that no two processes have at the same time. */
export interface NumberLeases {
  /**
   * A number of its own: the one it has if it has one, else the one that is wanted, else any that is free. Undefined when all
   * are taken, or the only one that will do is. Also renews it.
   */
  take(request: NumberLeaseRequest): Promise<number | undefined>
  /** Gives it back. */
  release(request: Pick<NumberLeaseRequest, 'name' | 'holder'>): Promise<void>
}
