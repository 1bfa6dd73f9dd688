import type { ApiKeyRequest, RotateRequest } from '@sluice/contract'
import type { OperationHandlers } from '../handler.ts'
import { pageRequestOf } from '../paging.ts'
import { notFound } from '../problems.ts'
import { adminAnswer, pageAnswer, rejectEnded, removedAnswer } from './admin-requests.ts'
import type { AdminContext } from './config-access.ts'

/** API keys. The secret of a key is in the answer that makes it, and nowhere else. */
export function apiKeyHandlers({ access, context }: AdminContext): OperationHandlers {
  return {
    'GET /admin/api-keys': async ({ query }) =>
      pageAnswer(await access.databaseReads.apiKeys.list(pageRequestOf(query))),

    'POST /admin/api-keys': async (request) => {
      const key = request.body as ApiKeyRequest
      rejectEnded(context.clock, [{ path: '/expiresAt', at: key.expiresAt }])
      const issued = await access.changeInDatabase(request, (config, author) => config.apiKeys.create(key, author))
      return adminAnswer(issued, { status: 201 })
    },

    'POST /admin/api-keys/{id}/rotate': async (request) => {
      const { overlapMs = 0 } = request.body as RotateRequest
      const issued = await access.changeInDatabase(request, (config, author) =>
        config.apiKeys.rotate(idOf(request.params), author, overlapMs),
      )
      return adminAnswer(issued, { status: 201 })
    },

    'DELETE /admin/api-keys/{id}': async (request) => {
      const id = idOf(request.params)
      await access.changeInDatabase(request, async ({ apiKeys }, author) => {
        if (!(await apiKeys.revoke(id, author))) throw notFound('API key of this id that is valid')
      })
      return removedAnswer()
    },
  }
}

function idOf(params: Readonly<Record<string, string>>): string {
  return params['id'] ?? ''
}
