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
}

/** Small numbers that no two processes have at the same time. */
export interface NumberLeases {
  /** A number of its own, the one it has if it has one; undefined when all are taken. Also renews it. */
  take(request: NumberLeaseRequest): Promise<number | undefined>
  /** Gives it back. */
  release(request: Pick<NumberLeaseRequest, 'name' | 'holder'>): Promise<void>
}
