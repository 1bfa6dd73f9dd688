import type { ReadinessReason } from '@sluice/contract'
import type { ThreadGateway } from '../../observability/gateway-status.ts'
import type { HealthCheck } from '../../operations/health.ts'

/** How the gateway of this thread stands, for `/readyz`. */
export function gatewayHealth(gateway: ThreadGateway): HealthCheck {
  const { mode, routes, upstreams, waitingFor, wasReady } = gateway
  const detail =
    mode === 'demo'
      ? 'demo upstream: no routes are configured'
      : `${countOf(routes, 'route')} to ${countOf(upstreams, 'upstream')}`
  const waits = waitingFor.length === 0 ? '' : `; waiting for ${waitingFor.join(', ')}`
  const ready = wasReady || waitingFor.length === 0
  return { name: 'gateway', ready, detail: `${detail}${waits}`, reasons: reasonsOf(gateway) }
}

function countOf({ length }: readonly unknown[], noun: string): string {
  return `${length} ${noun}${length === 1 ? '' : 's'}`
}

function reasonsOf({ upstreams, waitingFor, keySet, problem }: ThreadGateway): readonly ReadinessReason[] {
  const reasons: ReadinessReason[] = []
  const down = upstreams.filter(({ isAvailable }) => !isAvailable).map(({ name }) => `"${name}"`)
  if (waitingFor.length > 0) {
    const message = `The gateway waits for ${waitingFor.join(', ')}. They are tried again by themselves.`
    reasons.push({ code: 'gateway-waiting', message })
  }
  if (down.length > 0) {
    const message =
      `No instance takes requests in ${down.join(', ')}. Their routes are answered with 503, and they are tried ` +
      'again by themselves. "sluice gateway status" shows their instances.'
    reasons.push({ code: 'upstream-unavailable', message })
  }
  if (keySet?.problem !== undefined) {
    const meanwhile = keySet.keys === 0 ? 'Tokens are answered with 503.' : 'The keys loaded last stay in use.'
    const message = `The keys of tokens cannot be loaded: ${keySet.problem}. ${meanwhile} It is tried again by itself.`
    reasons.push({ code: 'token-keys-unavailable', message })
  }
  if (problem !== undefined) {
    const message = 'The routes in the file cannot be used. The previous ones stay in use; the log says why.'
    reasons.push({ code: 'gateway-config-refused', message })
  }
  return reasons
}
