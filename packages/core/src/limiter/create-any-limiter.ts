import { registerAllRuleKinds } from '../rule-kinds.ts'
import { createLimiter as createRegisteredLimiter } from './create-limiter.ts'

/**
 * Creates a limiter with rules of any algorithm, including those named by a string. The program then contains all
 * algorithms; `createLimiter` of `sluice/limiter` needs only those of its rules.
 */
export const createLimiter: typeof createRegisteredLimiter = ((
  options: Parameters<typeof createRegisteredLimiter>[0],
) => {
  registerAllRuleKinds()
  return createRegisteredLimiter(options)
}) as typeof createRegisteredLimiter
