import type { Client } from '@sluice/client'
import { decodeSnowflake, isClientError } from '@sluice/client'
import type { ReadinessCheck, ReadinessReason } from '@sluice/contract'
import { clockFinding } from './clock-check.ts'
import type { Finding } from './finding.ts'
import { failed, ok, skipped, warning } from './finding.ts'

/** The service to examine. */
export interface ServiceCheckOptions {
  readonly client: Client
  readonly url: string
  readonly hasKey: boolean
  readonly nowMs: () => number
}

/** Findings about the service. `isThere`: it answers. */
export interface ServiceFindings {
  readonly isThere: boolean
  readonly findings: readonly Finding[]
}

/** Checks a running service: readiness, clock, API key. */
export async function serviceFindings(options: ServiceCheckOptions): Promise<ServiceFindings> {
  const { client, url } = options
  try {
    await client.call('livez')
  } catch (error) {
    if (!isClientError(error)) throw error
    const isUntrusted = error.code === 'SLUICE_CLIENT_UNREACHABLE' && error.detail.includes('NODE_EXTRA_CA_CERTS')
    const advice = isUntrusted
      ? UNTRUSTED
      : 'Start it with "sluice serve", or set --url. The other checks do not need it.'
    return { isThere: false, findings: [warning('service', `${url} does not answer (${error.code})`, advice)] }
  }
  const findings = [...(await readinessFindings(options)), await serviceClock(options), await keyFinding(options)]
  return { isThere: true, findings }
}

const UNTRUSTED =
  'Its certificate is not trusted. Set NODE_EXTRA_CA_CERTS to the PEM file of its issuer, and --url to a name that ' +
  'the certificate has.'

async function readinessFindings({ client, url }: ServiceCheckOptions): Promise<readonly Finding[]> {
  try {
    const { status, checks, reasons } = await client.call('readyz')
    const text = `${url} is ${status}: ${checks.map(checkText).join('; ')}`
    if (status === 'ready') return [ok('service', text)]
    return [warning('service', text, 'It serves requests; the reasons follow.'), ...reasons.map(reasonFinding)]
  } catch (error) {
    if (!isClientError(error)) throw error
    const waiting = error.checks.filter(({ ready }) => !ready).map(checkText)
    const text = `${url} is not ready: ${waiting.join('; ') || error.detail}`
    return [failed('service', text, 'It gets no requests until it is ready.'), ...error.reasons.map(reasonFinding)]
  }
}

/** The first sentence of a reason says what is wrong, the rest what to do. */
function reasonFinding({ code, message }: ReadinessReason): Finding {
  const end = message.indexOf('. ') + 1
  return end === 0
    ? failed(code, message, 'See the log of the service.')
    : failed(code, message.slice(0, end), message.slice(end + 1))
}

function checkText({ name, detail }: ReadinessCheck): string {
  return `${name}: ${detail}`
}

/** An id contains the time at which the service created it. */
async function serviceClock({ client, nowMs }: ServiceCheckOptions): Promise<Finding> {
  const check = 'service clock'
  try {
    const beforeMs = nowMs()
    const { ids } = await client.call('ids')
    const afterMs = nowMs()
    return clockFinding(check, { beforeMs, thereMs: decodeSnowflake(ids[0]!).timestampMs, afterMs })
  } catch (error) {
    if (!isClientError(error)) throw error
    return warning(check, `it creates no ids (${error.code})`, 'See its log. Its clock is unknown.')
  }
}

async function keyFinding({ client, hasKey }: ServiceCheckOptions): Promise<Finding> {
  const check = 'api key'
  if (!hasKey) return skipped(check, 'not set: use SLUICE_API_KEY or --key')
  try {
    await client.call('listVersions', { parameters: { limit: 1 } })
    return ok(check, 'valid, with read permission')
  } catch (error) {
    if (!isClientError(error)) throw error
    if (error.code === 'SLUICE_HTTP_NOT_FOUND')
      return warning(
        check,
        'not checked: the admin API has another address',
        'Use its address with --url or SLUICE_URL.',
      )
    if (error.code === 'SLUICE_HTTP_FORBIDDEN')
      return warning(check, 'valid, without read permission', 'Use a key with a role.')
    return failed(check, `not accepted (${error.code})`, 'Create another as an admin: "sluice keys create".')
  }
}
