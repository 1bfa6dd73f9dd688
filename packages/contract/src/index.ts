export {
  type CallReport,
  MOST_REPORTS,
  parseReportRequest,
  type ReportAnswer,
  type ReportRequest,
} from './call-report.ts'
export {
  type NamedCaller,
  parseResetRequest,
  parseUsageQuery,
  type ResetRequest,
  type UsageQuery,
} from './caller-request.ts'
export {
  type BatchAnswer,
  batchAnswerJson,
  type CheckAnswer,
  checkAnswer,
  checkAnswerJson,
  type Dimension,
  instantText,
} from './check-answer.ts'
export {
  type BatchRequest,
  CHECK_PATH,
  type CheckField,
  type CheckRequest,
  type Descriptors,
  MOST_CHECKS,
  MOST_TOKENS,
  type ParsedBatchRequest,
  type ParsedCheckRequest,
  parseBatchRequest,
  parseCheckRequest,
  type ValidCheckRequest,
} from './check-request.ts'
export type { DecisionLike, DecisionReason, FailureLike, LimitReportLike } from './decision-like.ts'
export {
  type EnvoyAnswer,
  type EnvoyCode,
  type EnvoyCurrentLimit,
  type EnvoyDecisionLike,
  type EnvoyStatus,
  envoyAnswer,
} from './envoy-answer.ts'
export {
  ENVOY_PATH,
  type EnvoyCount,
  type EnvoyDescriptor,
  type EnvoyEntry,
  type EnvoyLimit,
  type EnvoyRequest,
  type EnvoyUnit,
  parseEnvoyRequest,
  type ValidEnvoyDescriptor,
  type ValidEnvoyRequest,
} from './envoy-request.ts'
export { type ExpectedRevision, etagOf, expectedRevision } from './etag.ts'
export type { FieldProblem } from './field-problem.ts'
export { type ComponentNames, componentsOf, type SchemaWithDefinitions } from './foreign-components.ts'
export { isIpAddress } from './ip-address.ts'
export { type OpenApiDocument, type OpenApiOptions, openApiDocument } from './openapi.ts'
export { ANSWER_HEADERS, type AnswerHeader, type AnswerHeaderName } from './operations/answer-headers.ts'
export type { EntityParameters, EntryFilter, OverrideParameters } from './operations/caller-operations.ts'
export type { AuditFilter, HistoryParameters } from './operations/insight-operations.ts'
export type {
  Call,
  Operation,
  OperationAnswer,
  OperationMethod,
  OperationParameter,
  OperationRole,
} from './operations/operation.ts'
export type { PageParameters } from './operations/page-parameters.ts'
export { MOST_IDS } from './operations/service-operations.ts'
export { type Calls, mayDo, OPERATIONS, type OperationId } from './operations.ts'
export {
  PROBLEM_MEDIA_TYPE,
  PROBLEMS,
  type ProblemCode,
  type ProblemDetails,
  type ProblemDocument,
  problemDocument,
  READINESS_REASONS,
  type ReadinessCheck,
  type ReadinessReason,
  type ReadinessReasonCode,
} from './problem.ts'
export {
  HEADER_PROFILES,
  type HeaderProfile,
  legacyRateLimitHeaders,
  type RateLimitHeaderOptions,
  rateLimitHeaders,
} from './rate-limit-headers.ts'
export type { Parsed, RefusedBody } from './request-fields.ts'
export {
  type AcquireRequest,
  expiryText,
  type HeartbeatAnswer,
  LONGEST_RESERVATION_ID,
  LONGEST_RESERVATION_MS,
  LONGEST_WAIT_MS,
  parseAcquireRequest,
  parseReservationRequest,
  parseReserveRequest,
  parseSettleRequest,
  type ReservationAnswer,
  type ReservationRequest,
  type ReserveRequest,
  type SettlementAnswer,
  type SettleRequest,
} from './reservation.ts'
export type { JsonSchema, JsonType } from './schema.ts'
export type { AcknowledgeRequest, Alert, DeadLetter, SilenceRequest } from './schemas/alert-schemas.ts'
export {
  type ApiKey,
  type ApiKeyRequest,
  type ApiKeyRole,
  type IssuedApiKey,
  LONGEST_OVERLAP_MS,
  type RotateRequest,
} from './schemas/api-key-schemas.ts'
export type { AuditRecord } from './schemas/audit-schemas.ts'
export {
  type BlockRequest,
  type BulkAnswer,
  type BulkMembersRequest,
  type BulkOverridesRequest,
  type IncidentAnswer,
  MOST_BULK_ENTRIES,
  type PutAnswer,
  type Stored,
} from './schemas/entry-schemas.ts'
export type { ExplainedTier, Explanation, LimitStep, RuleExplanation } from './schemas/explain-schemas.ts'
export type {
  Counter,
  RateLimits,
  RateLimitsAnswer,
  RateLimitsPage,
  RateLimitsRequest,
  ResetAnswer,
  Usage,
  UsageAnswer,
} from './schemas/limit-schemas.ts'
export type { Page } from './schemas/page-schema.ts'
export type { PartAnswer, PartPage } from './schemas/part-schemas.ts'
export {
  type Block,
  type DenyEntry,
  type DescriptorDomain,
  type DescriptorNode,
  type Exemption,
  FOREIGN_SCHEMAS,
  type ForeignSchemaName,
  type Incident,
  type Membership,
  type NamedInPath,
  type Override,
  type OverrideTerms,
  type PolicyRule,
  type RequestMatch,
  type ResourceRule,
  type RuleSet,
  type Tier,
} from './schemas/rule-set-shapes.ts'
export type { IdsAnswer, LivenessAnswer, ReadinessAnswer } from './schemas/service-schemas.ts'
export type {
  HistoryAnswer,
  LiveSample,
  TopAnswer,
  TopDimension,
  TopEntry,
  TrafficPoint,
  TrafficShare,
} from './schemas/traffic-schemas.ts'
export type {
  DiffAnswer,
  DraftRequest,
  EnvoyFile,
  ImportRequest,
  RollbackRequest,
  RuleSetChange,
  StageRequest,
  Version,
  VersionContent,
  VersionStage,
} from './schemas/version-schemas.ts'
export { SCHEMAS } from './schemas.ts'
