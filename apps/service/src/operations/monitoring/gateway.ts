import type { GatewayMessages } from '../../observability/gateway-status.ts'
import { mergedGateway } from '../../observability/gateway-status.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import type { OperationHandlers } from '../handler.ts'
import { adminAnswer } from '../handler.ts'

/** Shows how the gateway stands over all threads. */
export function gatewayHandlers(threads: ThreadGroup<GatewayMessages>): OperationHandlers<'gateway'> {
  return {
    gateway: async () => {
      const { replies } = await threads.gather('gateway.status')
      return adminAnswer(mergedGateway(replies.filter((reply) => reply !== undefined)))
    },
  }
}
