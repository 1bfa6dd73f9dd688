// Imported, and not the global one, which fake timers of test frameworks replace: requests would wait until time is moved on.
import { setImmediate } from 'node:timers'
import { RequestBatcher } from '../../limiter/request-batcher.ts'

/** That of all servers of this process. */
export const nodeBatcher: RequestBatcher = new RequestBatcher((run) => void setImmediate(run))
