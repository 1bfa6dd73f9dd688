import type { OperationHandler, OperationHandlers } from './handler.ts'
import { refusalAnswer } from './problems.ts'

/** The handlers, with what they throw answered as problems. What no client is at fault for is thrown on. */
export function answeringRefusals(handlers: OperationHandlers): OperationHandlers {
  return Object.fromEntries(Object.entries(handlers).map(([name, handle]) => [name, answering(handle)]))
}

function answering(handle: OperationHandler): OperationHandler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      const answer = refusalAnswer(error)
      if (answer === undefined) throw error
      return answer
    }
  }
}
