import { HttpException } from '@nestjs/common'
import type { DecisionLike } from '@sluice/contract'
import type { Refusal } from '../../http/outcome.ts'

/**
 * A request that was refused. Exception filters see it as any other: `getStatus()` is that of the refusal, `getResponse()` its
 * problem document (RFC 9457). The headers that announce the limit are set on the answer already.
 */
export class RateLimitException extends HttpException {
  readonly decision: DecisionLike

  constructor({ body, status, decision }: Refusal) {
    super(JSON.parse(body) as Record<string, unknown>, status)
    this.decision = decision
  }
}
