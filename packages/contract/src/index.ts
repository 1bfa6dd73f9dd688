export type { Alert, DeadLetter } from './admin/alert-bodies.ts'
export type { ApiKey, ApiKeyRole, IssuedApiKey } from './admin/api-key-bodies.ts'
export type { DecisionExplanation, DecisionRecord, DecisionUpdate } from './admin/decision-bodies.ts'
export { type IncidentAnswer, MOST_BULK_ENTRIES, type PutAnswer, type Stored } from './admin/entry-bodies.ts'
export type { AuditRecord, Explanation, LimitStep, RuleExplanation } from './admin/explain-and-audit-bodies.ts'
export type { GatewayAnswer, GatewayInstance, GatewayRoute, GatewayUpstream } from './admin/gateway-bodies.ts'
export type {
  AlertBounds,
  NodeStatus,
  NodesAnswer,
  OverviewAnswer,
  OverviewUpdate,
  ShadowRuleSeries,
  ShadowSeries,
  TrafficSeries,
} from './admin/overview-bodies.ts'
export type { PartAnswer, PartPage, RateLimits, RateLimitsRequest } from './admin/rule-bodies.ts'
export type {
  Block,
  DenyEntry,
  DescriptorDomain,
  DescriptorNode,
  Exemption,
  Incident,
  Membership,
  Override,
  OverrideTerms,
  PolicyRule,
  RequestMatch,
  ResourceRule,
  RuleSet,
  Tier,
} from './admin/rule-set-types.ts'
export type { Session, SessionState } from './admin/session-bodies.ts'
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
export { type NamedCaller, parseResetRequest, parseUsageQuery } from './admin/usage-bodies.ts'
export type {
  DiffAnswer,
  EnvoyFile,
  ImportRequest,
  RuleSetChange,
  StageRequest,
  Version,
  VersionContent,
  VersionStage,
} from './admin/version-bodies.ts'
export { batchAnswerJson, checkAnswer, checkAnswerJson, type Dimension, instantText } from './checks/check-answer.ts'
export type { BatchAnswer, CheckAnswer, FailureLike } from './checks/check-answer-schema.ts'
export {
  CHECK_PATH,
  type CheckRequest,
  type Descriptors,
  MOST_CHECKS,
  MOST_TOKENS,
  parseBatchRequest,
  parseCheckRequest,
  type ValidCheckRequest,
} from './checks/check-request.ts'
export type { DecisionLike, LimitReportLike } from './checks/decision.ts'
export { type EnvoyAnswer, type EnvoyDecisionLike, envoyAnswer, envoyMetadata } from './checks/envoy-answer.ts'
export {
  ENVOY_PATH,
  type EnvoyUnit,
  LARGEST_ENVOY_COUNT,
  MOST_ENVOY_DESCRIPTORS,
  MOST_ENVOY_ENTRIES,
  type ValidEnvoyDescriptor,
  type ValidEnvoyRequest,
} from './checks/envoy-request.ts'
export { type CallReport, MOST_REPORTS, parseReportRequest, type ReportAnswer } from './checks/report-bodies.ts'
export {
  type AcquireRequest,
  expiryText,
  type HeartbeatAnswer,
  LONGEST_RESERVATION_ID,
  LONGEST_WAIT_MS,
  type ReservationAnswer,
  type ReservationRequest,
  type ReserveRequest,
  type SettlementAnswer,
  type SettleRequest,
} from './checks/reservation-bodies.ts'
export { etagOf, expectedRevision, type Precondition } from './headers/etag.ts'
export { HEADER_PROFILES, type HeaderProfile, rateLimitHeaders } from './headers/rate-limit-headers.ts'
export { componentsOf, type OpenApiDocument, openApiDocument, SCHEMAS } from './openapi.ts'
export { BODY_READERS } from './operations/body-readers.ts'
export type { Call, Operation, OperationMethod, OperationParameter } from './operations/operation.ts'
export {
  type Calls,
  type Handlers,
  mayDo,
  OPERATIONS,
  type OperationId,
  type OperationInput,
} from './operations/operation-table.ts'
export { MOST_IDS } from './operations/service-operations.ts'
export type { Parsed } from './schema/body-parser.ts'
export type { JsonSchema, JsonType } from './schema/json-schema.ts'
export type { FieldProblem, Page } from './schema/value-schemas.ts'
export { PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, READINESS_REASONS } from './service/problem.ts'
export { type ProblemDetails, problemDocument } from './service/problem-document.ts'
export type { ProblemDocument, ReadinessAnswer, ReadinessCheck, ReadinessReason } from './service/service-bodies.ts'
