/** What the process and a thread of it say about themselves. */
export interface SystemReadings {
  /** Microseconds of processor time that all threads have used. */
  readonly cpuMicros: () => number
  /** Memory that the process has, in bytes. */
  readonly residentBytes: () => number
  /** Bytes of the heap of this thread that are in use. */
  readonly heapBytes: () => number
}

/** What this process and thread say. */
export const systemReadings: SystemReadings = {
  cpuMicros() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  residentBytes: () => process.memoryUsage.rss(),
  heapBytes: () => process.memoryUsage().heapUsed,
}
