import { registerAllRuleKinds } from '../rule-kinds.ts'
import { createLimiter as createRegisteredLimiter } from './create-limiter.ts'

/**
 * Creates a limiter with rules of any algorithm, also those that name it in a string. The program carries all
 * algorithms; `sluice/limiter` has a `createLimiter` that needs only those of its rules.
 */
export const createLimiter: typeof createRegisteredLimiter = ((
  options: Parameters<typeof createRegisteredLimiter>[0],
) => {
  registerAllRuleKinds()
  return createRegisteredLimiter(options)
}) as typeof createRegisteredLimiter
