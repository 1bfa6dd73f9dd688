import type { Client } from '@sluice/client'
import { decodeSnowflake, isClientError } from '@sluice/client'
import type { ReadinessCheck, ReadinessReason } from '@sluice/contract'
import type { Finding } from './finding.ts'
import { failed, ok, skipped, warning } from './finding.ts'
import { clockFinding } from './server-probe.ts'

/** What the check of a service works with. */
export interface ServiceQuestion {
  readonly client: Client
  readonly url: string
  readonly hasKey: boolean
  readonly nowMs: () => number
}

/** Whether the service answers; `findings` say how it stands. */
export interface ServiceFindings {
  readonly isThere: boolean
  readonly findings: readonly Finding[]
}

/** How a running service stands: ready, its clock, the API key. */
export async function serviceFindings(question: ServiceQuestion): Promise<ServiceFindings> {
  const { client, url } = question
  try {
    await client.call('livez')
  } catch (error) {
    if (!isClientError(error)) throw error
    const advice = 'Start one with "sluice serve", or name another with --url. Everything else here holds without it.'
    return { isThere: false, findings: [warning('service', `${url} does not answer (${error.code})`, advice)] }
  }
  const findings = [...(await readinessFindings(question)), await serviceClock(question), await keyFinding(question)]
  return { isThere: true, findings }
}

async function readinessFindings({ client, url }: ServiceQuestion): Promise<readonly Finding[]> {
  try {
    const { status, checks, reasons } = await client.call('readyz')
    const text = `${url} is ${status}: ${checks.map(checkText).join('; ')}`
    if (status === 'ready') return [ok('service', text)]
    return [warning('service', text, 'It answers requests; see what is wrong below.'), ...reasons.map(reasonFinding)]
  } catch (error) {
    if (!isClientError(error)) throw error
    const waiting = error.checks.filter(({ ready }) => !ready).map(checkText)
    const text = `${url} is not ready: ${waiting.join('; ') || error.detail}`
    return [
      failed('service', text, 'It gets no requests until then; see what it waits for.'),
      ...error.reasons.map(reasonFinding),
    ]
  }
}

/** The message of a reason says what to do. */
function reasonFinding({ code, message }: ReadinessReason): Finding {
  const end = message.indexOf('. ') + 1
  return end === 0
    ? failed(code, message, 'See the log of the service.')
    : failed(code, message.slice(0, end), message.slice(end + 1))
}

function checkText({ name, detail }: ReadinessCheck): string {
  return `${name}: ${detail}`
}

/** The ids of a service carry the instant at which they were made. */
async function serviceClock({ client, nowMs }: ServiceQuestion): Promise<Finding> {
  const check = 'service clock'
  try {
    const beforeMs = nowMs()
    const { ids } = await client.call('ids')
    const afterMs = nowMs()
    return clockFinding(check, { beforeMs, thereMs: decodeSnowflake(ids[0]!).timestampMs, afterMs })
  } catch (error) {
    if (!isClientError(error)) throw error
    return warning(check, `it makes no ids (${error.code})`, 'Look at its log; its clock is not known.')
  }
}

async function keyFinding({ client, hasKey }: ServiceQuestion): Promise<Finding> {
  const check = 'api key'
  if (!hasKey) return skipped(check, 'none is given, in SLUICE_API_KEY or by --key')
  try {
    await client.call('listVersions', { parameters: { limit: 1 } })
    return ok(check, 'it is valid, and may read')
  } catch (error) {
    if (!isClientError(error)) throw error
    if (error.code === 'SLUICE_HTTP_FORBIDDEN')
      return warning(check, 'it is valid, and may not even read', 'Use one with a role.')
    return failed(check, `it is not accepted (${error.code})`, 'Make another with "sluice keys create", as an admin.')
  }
}
