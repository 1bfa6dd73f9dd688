import type { ThreadService, ThreadServiceParts } from '../thread-service.ts'
import { composeThread } from '../thread-service.ts'
import type { Crew } from './crew.ts'
import { SingleThread } from './thread-group.ts'

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
