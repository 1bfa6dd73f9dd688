export type { AcknowledgeRequest, Alert, DeadLetter, SilenceRequest } from './admin/alert-bodies.ts'
export {
  type ApiKey,
  type ApiKeyRequest,
  type ApiKeyRole,
  type IssuedApiKey,
  LONGEST_OVERLAP_MS,
  type RotateRequest,
} from './admin/api-key-bodies.ts'
export type { DecisionExplanation, DecisionRecord, DecisionUpdate } from './admin/decision-bodies.ts'
export {
  type BlockRequest,
  type BulkAnswer,
  type BulkMembersRequest,
  type BulkOverridesRequest,
  type IncidentAnswer,
  MOST_BULK_ENTRIES,
  type PutAnswer,
  type Stored,
} from './admin/entry-bodies.ts'
export type {
  AuditRecord,
  ExplainedTier,
  Explanation,
  LimitStep,
  RuleExplanation,
} from './admin/explain-and-audit-bodies.ts'
export type {
  GatewayAnswer,
  GatewayInstance,
  GatewayKeySet,
  GatewayRoute,
  GatewayUpstream,
} from './admin/gateway-bodies.ts'
export type {
  NodeStatus,
  NodesAnswer,
  OverviewAnswer,
  OverviewUpdate,
  ShadowRuleSeries,
  ShadowSeries,
  TrafficSeries,
} from './admin/overview-bodies.ts'
export type {
  PartAnswer,
  PartPage,
  RateLimits,
  RateLimitsAnswer,
  RateLimitsPage,
  RateLimitsRequest,
} from './admin/rule-bodies.ts'
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
} from './admin/rule-set-types.ts'
export { CSRF_HEADER, type Session, type SessionState, type SignInRequest } from './admin/session-bodies.ts'
export type {
  HistoryAnswer,
  LiveSample,
  TopAnswer,
  TopDimension,
  TopEntry,
  TrafficPoint,
  TrafficShare,
} from './admin/traffic-bodies.ts'
export type { Counter, ResetAnswer, Usage, UsageAnswer } from './admin/usage-bodies.ts'
export {
  type NamedCaller,
  parseResetRequest,
  parseUsageQuery,
  type ResetRequest,
} from './admin/usage-bodies.ts'
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
} from './admin/version-bodies.ts'
export { batchAnswerJson, checkAnswer, checkAnswerJson, type Dimension, instantText } from './checks/check-answer.ts'
export type { BatchAnswer, CheckAnswer, DecisionReason, FailureLike } from './checks/check-answer-schema.ts'
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
} from './checks/check-request.ts'
export type { DecisionLike, LimitReportLike } from './checks/decision.ts'
export {
  type EnvoyAnswer,
  type EnvoyCode,
  type EnvoyCurrentLimit,
  type EnvoyDecisionLike,
  type EnvoyStatus,
  envoyAnswer,
  envoyMetadata,
} from './checks/envoy-answer.ts'
export {
  ENVOY_PATH,
  type EnvoyCount,
  type EnvoyDescriptor,
  type EnvoyEntry,
  type EnvoyLimit,
  type EnvoyRequest,
  type EnvoyUnit,
  LARGEST_ENVOY_COUNT,
  MOST_ENVOY_DESCRIPTORS,
  MOST_ENVOY_ENTRIES,
  parseEnvoyRequest,
  type ValidEnvoyDescriptor,
  type ValidEnvoyRequest,
} from './checks/envoy-request.ts'
export {
  type CallReport,
  MOST_REPORTS,
  parseReportRequest,
  type ReportAnswer,
  type ReportRequest,
} from './checks/report-bodies.ts'
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
} from './checks/reservation-bodies.ts'
export { ANSWER_HEADERS, type AnswerHeader, type AnswerHeaderName } from './headers/answer-headers.ts'
export { type ExpectedRevision, etagOf, expectedRevision, type Precondition } from './headers/etag.ts'
export {
  HEADER_PROFILES,
  type HeaderProfile,
  legacyRateLimitHeaders,
  type RateLimitHeaderOptions,
  rateLimitHeaders,
} from './headers/rate-limit-headers.ts'
export {
  type ComponentNames,
  componentsOf,
  type OpenApiDocument,
  type OpenApiOptions,
  openApiDocument,
  SCHEMAS,
  type SchemaWithDefinitions,
} from './openapi.ts'
export { BODY_READERS, type ReadBodies } from './operations/body-readers.ts'
export type {
  Call,
  Operation,
  OperationAnswer,
  OperationMethod,
  OperationParameter,
  OperationRole,
} from './operations/operation.ts'
export {
  type Calls,
  type Handlers,
  mayDo,
  OPERATIONS,
  type OperationId,
  type OperationInput,
} from './operations/operation-table.ts'
export { MOST_IDS } from './operations/service-operations.ts'
export type { InvalidBody, Parsed } from './schema/body-parser.ts'
export { isIpAddress } from './schema/body-parser.ts'
export type { JsonSchema, JsonType } from './schema/json-schema.ts'
export type { FieldProblem, Page } from './schema/value-schemas.ts'
export {
  PROBLEM_MEDIA_TYPE,
  PROBLEMS,
  type ProblemCode,
  READINESS_REASONS,
  type ReadinessReasonCode,
} from './service/problem.ts'
export { type ProblemDetails, problemDocument } from './service/problem-document.ts'
export type {
  IdsAnswer,
  LivenessAnswer,
  ProblemDocument,
  ReadinessAnswer,
  ReadinessCheck,
  ReadinessReason,
} from './service/service-bodies.ts'
