import type { ValidCheckRequest } from '@sluice/contract'
import type { PolicyRequest } from '@sluice/core'

/** The request that the rules are asked about. `homeRegion` is where callers are that do not say it. */
export function policyRequestOf(request: ValidCheckRequest, homeRegion: string | undefined): PolicyRequest {
  const { resource, method, ip, user, apiKey, tenant, descriptors, service, region, tier, tokens } = request
  const asked = {
    resource,
    method,
    ip,
    user,
    apiKey,
    tenant,
    descriptors,
    service,
    region: region ?? homeRegion,
    tier,
    cost: tokens,
  }
  // To the engine a field that is undefined is one that is not there; to the compiler it is not. All requests have one shape,
  // which is quicker than each its own.
  return asked as PolicyRequest
}
