import type { SharedMemoryHandle } from '@sluice/core'
import type { Settings } from '../settings.ts'

/** What a thread is given when it is made. */
export interface WorkerData {
  readonly settings: Settings
  /** Its number, 0 to one less than there are threads. */
  readonly index: number
  readonly shared: SharedMemoryHandle | undefined
  /** Where failed attempts to authenticate are counted. */
  readonly failures: SharedMemoryHandle
  /** Of the `SigningSecret`. */
  readonly secret: SharedArrayBuffer
  /** Of the `MachineCells`. */
  readonly cells: SharedArrayBuffer
}
