export { type CheckAnswer, checkAnswer, checkAnswerJson, type Dimension } from './check-answer.ts'
export {
  CHECK_PATH,
  type CheckField,
  type CheckRequest,
  MOST_TOKENS,
  type ParsedCheckRequest,
  parseCheckRequest,
  type ValidCheckRequest,
} from './check-request.ts'
export type { DecisionLike } from './decision-like.ts'
export type { FieldProblem } from './field-problem.ts'
export { isIpAddress } from './ip-address.ts'
export {
  PROBLEM_MEDIA_TYPE,
  PROBLEMS,
  type ProblemCode,
  type ProblemDetails,
  type ProblemDocument,
  problemDocument,
} from './problem.ts'
export { legacyRateLimitHeaders } from './rate-limit-headers.ts'
