import type { ThreadService, ThreadServiceParts } from '../node.ts'
import { composeThread } from '../node.ts'
import { SingleThread } from '../threads/thread-group.ts'
import type { Crew } from './workers.ts'

/** This thread alone answers requests. */
export function singleCrew(parts: Omit<ThreadServiceParts, 'threads' | 'checks' | 'failures'>): Crew {
  const group = new SingleThread()
  let service: ThreadService | undefined
  return {
    group,
    get port() {
      return service?.port
    },
    async start() {
      service = composeThread({ ...parts, threads: group, checks: [], failures: undefined })
      await service.start()
    },
    async drain(drainMs) {
      await service?.drain(drainMs)
    },
    async stop() {
      await service?.stop()
    },
  }
}
