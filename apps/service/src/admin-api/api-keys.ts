import type { ApiKey, ApiKeyTable } from '@sluice/config-store'
import type { ApiKeyRequest, RotateRequest } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { adminAnswer, pageAnswer, removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { pageRequestOf } from './list-page.ts'
import type { Refusal } from './refusal.ts'
import { notFound, refusal } from './refusal.ts'

/** Keys that are looked at in one step. */
const MOST_LISTED = 1000

/** API keys. The secret of a key is in the answer that makes it, and nowhere else. */
export function apiKeyHandlers({ access, context }: AdminParts): OperationHandlers {
  return {
    'GET /admin/api-keys': async ({ query }) => pageAnswer(await access.keyReads.apiKeys.list(pageRequestOf(query))),

    'POST /admin/api-keys': async (request) => {
      const key = request.body as ApiKeyRequest
      const issued = await access.changeKeys(request, (config, author) => config.apiKeys.create(key, author))
      return adminAnswer(issued, { status: 201 })
    },

    'POST /admin/api-keys/{id}/rotate': async (request) => {
      const { overlapMs = 0 } = request.body as RotateRequest
      const issued = await access.changeKeys(request, (config, author) =>
        config.apiKeys.rotate(idOf(request.params), author, overlapMs),
      )
      return adminAnswer(issued, { status: 201 })
    },

    'DELETE /admin/api-keys/{id}': async (request) => {
      const id = idOf(request.params)
      await access.changeKeys(request, async ({ apiKeys }, author) => {
        if (await isLastAdmin(apiKeys, id, context.clock)) throw lastAdmin()
        if (!(await apiKeys.revoke(id, author))) throw notFound('API key of this id that is valid')
      })
      return removedAnswer()
    },
  }
}

/** Whether nobody but the holder of this key could administer the service, which no key of a tenant is good for. */
async function isLastAdmin(apiKeys: ApiKeyTable, id: string, clock: Clock): Promise<boolean> {
  const nowMs = clock.nowMicros() / MICROS_PER_MS
  let isAdmin = false
  let after: string | undefined
  do {
    const { items, next } = await apiKeys.list({ limit: MOST_LISTED, ...(after === undefined ? {} : { after }) })
    const admins = items.filter((key) => key.role === 'admin' && key.tenant === undefined && isValid(key, nowMs))
    if (admins.some((key) => key.id !== id)) return false
    isAdmin ||= admins.length > 0
    after = next
  } while (after !== undefined)
  return isAdmin
}

function isValid({ revokedAt, expiresAt }: ApiKey, nowMs: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > nowMs)
}

function lastAdmin(): Refusal {
  return refusal(
    'SLUICE_HTTP_CONFLICT',
    'This is the last valid key with the role admin: without it nobody could make another. Make one first, or rotate it.',
  )
}

function idOf(params: Readonly<Record<string, string>>): string {
  return params['id'] ?? ''
}
