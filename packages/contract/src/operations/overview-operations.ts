import type { DecisionExplanation, DecisionUpdate } from '../admin/decision-bodies.ts'
import { DECISION_EXPLANATION, DECISION_PAGE, DECISION_UPDATE } from '../admin/decision-bodies.ts'
import type { NodesAnswer, OverviewAnswer, OverviewUpdate, ShadowSeries } from '../admin/overview-bodies.ts'
import { NODES_ANSWER, OVERVIEW_ANSWER, OVERVIEW_UPDATE, SHADOW_SERIES } from '../admin/overview-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import { DIMENSION, ENTITY, instant, RESOURCE, text, whole } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import { NODE_PARAMETER, operations, PAGE_PARAMETERS, pathPart, query } from './operation.ts'

const OVERLOADED: readonly ProblemCode[] = ['SLUICE_HTTP_NOT_FOUND', 'SLUICE_HTTP_OVERLOADED']

const READS: readonly ProblemCode[] = [...OVERLOADED, 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

const RANGE_PARAMETERS = {
  from: query('Start. Default: an hour before "to".', instant('From then on.')),
  to: query('End. Default: now.', instant('Until then.')),
  stepMs: query(
    'Length of each step. Default: chosen for about 120 steps.',
    whole('Milliseconds; the next longer span that is kept is taken.', 1000, 86_400_000),
  ),
}

const DECISION_FILTER = {
  resource: query('Only calls of this resource.', RESOURCE),
  rule: query('Only what this rule decided.', text('Name of a rule.', 2200)),
  dimension: query('Only what was decided in this dimension.', DIMENSION),
  caller: query('Only this caller: its value, or the digest of an API key.', ENTITY),
  outcome: query('Only allowed or denied calls. Default: both.', { type: 'string', enum: ['allowed', 'denied'] }),
}

/** What the dashboard shows of traffic, decisions and nodes. */
export const OVERVIEW_OPERATIONS = operations('monitoring', {
  overview: {
    method: 'GET',
    path: '/admin/overview',
    role: 'viewer',
    summary: 'Shows traffic as aligned series',
    description:
      'Checks, denials, latency, the resources that deny most and the regions, in equal steps without gaps, over all ' +
      'nodes or one. Steps are 10 seconds or longer in the last hour, a minute or longer in the last two days, and ' +
      'an hour or longer before. The answer is bounded: at most 400 steps and 51 resources.',
    parameters: {
      ...RANGE_PARAMETERS,
      ...NODE_PARAMETER,
      resources: query('Maximum number of resources besides other. Default: 10.', {
        ...whole('How many.', 0, 50),
        default: 10,
      }),
    },
    answers: { 200: { description: 'The series.', schema: ref<OverviewAnswer>(OVERVIEW_ANSWER) } },
    problems: READS,
  },
  overviewLive: {
    method: 'GET',
    path: '/admin/overview/live',
    role: 'viewer',
    summary: 'Streams compact updates',
    description:
      'A stream of server-sent events that continues "overview": the event is called "update", its data is JSON. ' +
      'Only what changed is sent.',
    parameters: {
      ...NODE_PARAMETER,
      everyMs: query('Time between updates; below 1000 for one node only. Default: 1000.', {
        ...whole('Milliseconds.', 100, 10_000),
        default: 1000,
      }),
      resources: query('Maximum number of resources besides other. Default: 10.', {
        ...whole('How many.', 0, 50),
        default: 10,
      }),
    },
    answers: {
      200: {
        description: 'The stream.',
        mediaType: 'text/event-stream',
        schema: ref<OverviewUpdate>(OVERVIEW_UPDATE),
        headers: ['Cache-Control'],
      },
    },
    problems: OVERLOADED,
    streams: true,
  },
  shadowSeries: {
    method: 'GET',
    path: '/admin/versions/{number}/shadow',
    role: 'viewer',
    summary: 'Shows what a version would deny',
    description: 'What a version in stage shadow or percent would have denied over time, beside what was denied.',
    parameters: {
      number: pathPart('Number of the version.', { type: 'integer', minimum: 1, maximum: 2_147_483_647 }),
      ...RANGE_PARAMETERS,
      ...NODE_PARAMETER,
    },
    answers: { 200: { description: 'The series.', schema: ref<ShadowSeries>(SHADOW_SERIES) } },
    problems: READS,
  },
  listDecisions: {
    method: 'GET',
    path: '/admin/decisions',
    role: 'viewer',
    summary: 'Lists recent decisions',
    description:
      'A sample of recent decisions, newest first. Of every 10 seconds of the last 15 minutes each thread keeps a ' +
      'random choice of 36 denied and 12 allowed ones. Other nodes share their newest 256, up to 10 seconds later. ' +
      'API keys are shown as digests.',
    parameters: {
      ...PAGE_PARAMETERS,
      ...DECISION_FILTER,
      ...NODE_PARAMETER,
      from: query('Only what was decided from then on.', instant('From then on.')),
      to: query('Only what was decided before.', instant('Until then.')),
    },
    answers: { 200: { description: 'The decisions.', schema: DECISION_PAGE.ref } },
    problems: OVERLOADED,
  },
  liveDecisions: {
    method: 'GET',
    path: '/admin/decisions/live',
    role: 'viewer',
    summary: 'Streams recent decisions',
    description:
      'A stream of server-sent events, one each second in which something was decided: the event is called ' +
      '"decisions", its data is JSON.',
    parameters: { ...DECISION_FILTER, ...NODE_PARAMETER },
    answers: {
      200: {
        description: 'The stream.',
        mediaType: 'text/event-stream',
        schema: ref<DecisionUpdate>(DECISION_UPDATE),
        headers: ['Cache-Control'],
      },
    },
    problems: OVERLOADED,
    streams: true,
  },
  explainDecision: {
    method: 'GET',
    path: '/admin/decisions/{id}/explain',
    role: 'viewer',
    summary: 'Explains a recent decision',
    description:
      'Every rule considered for the call of a recent decision, why it holds or not, and how its counters stand now. ' +
      'Nothing is charged.',
    parameters: { id: pathPart('Id of the decision.', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' }) },
    answers: { 200: { description: 'The explanation.', schema: ref<DecisionExplanation>(DECISION_EXPLANATION) } },
    problems: [...OVERLOADED, 'SLUICE_HTTP_STORE_UNAVAILABLE'],
  },
  nodes: {
    method: 'GET',
    path: '/admin/nodes',
    role: 'viewer',
    summary: 'Lists nodes',
    description: 'Every node of the deployment: version, uptime, threads, configuration lag, store, last seen.',
    answers: { 200: { description: 'The nodes.', schema: ref<NodesAnswer>(NODES_ANSWER) } },
    problems: ['SLUICE_HTTP_OVERLOADED'],
  },
})
