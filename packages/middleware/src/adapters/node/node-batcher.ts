// Not the global function: fake timers of test frameworks replace it, and requests would wait for the fake clock.
import { setImmediate } from 'node:timers'
import { RequestBatcher } from '../../limiter/request-batcher.ts'

/** Shared by all servers of this process. */
export const nodeBatcher: RequestBatcher = new RequestBatcher((run) => void setImmediate(run))
