import type { OperationHandlers } from '../handler.ts'
import { adminAnswer, pageAnswer, removedAnswer } from '../handler.ts'
import { notFound } from '../problems.ts'
import type { AdminContext } from './config-access.ts'
import { rejectEnded } from './config-access.ts'

type ApiKeyOperation = 'listApiKeys' | 'createApiKey' | 'rotateApiKey' | 'revokeApiKey'

/** API keys. The secret of a key is only in the answer that creates it. */
export function apiKeyHandlers({ access, context }: AdminContext): OperationHandlers<ApiKeyOperation> {
  return {
    listApiKeys: async ({ parameters }) => pageAnswer(await access.databaseReads.apiKeys.list(parameters)),

    createApiKey: async (request) => {
      const key = request.body
      rejectEnded(context.clock, [{ path: '/expiresAt', at: key.expiresAt }])
      const issued = await access.changeInDatabase(request, (config, author) => config.apiKeys.create(key, author))
      return adminAnswer(issued, { status: 201 })
    },

    rotateApiKey: async (request) => {
      const { parameters, body } = request
      const issued = await access.changeInDatabase(request, (config, author) =>
        config.apiKeys.rotate(parameters.id, author, body.overlapMs ?? 0),
      )
      return adminAnswer(issued, { status: 201 })
    },

    revokeApiKey: async (request) => {
      const { id } = request.parameters
      await access.changeInDatabase(request, async ({ apiKeys }, author) => {
        if (!(await apiKeys.revoke(id, author))) throw notFound('API key of this id that is valid')
      })
      return removedAnswer()
    },
  }
}
