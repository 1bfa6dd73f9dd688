import type { MainThread } from '../threads/thread-group.ts'

/** All that answers requests in this process: one thread, or several under a supervisor. It runs once. */
export interface Crew {
  /** The group of its threads, as the main thread has it. */
  readonly group: MainThread
  /** Where it listens; undefined unless it is started. */
  readonly port: number | undefined
  /** Resolves when requests are answered. */
  start(): Promise<void>
  /** Not ready from now on, and connections end with their answers; resolves after `drainMs`, whether there are any or not. */
  drain(drainMs: number): Promise<void>
  stop(): Promise<void>
}
