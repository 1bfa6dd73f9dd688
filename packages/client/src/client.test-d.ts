import type { CheckAnswer, Page, Stored, Version } from '@sluice/contract'
import { expectTypeOf } from 'vitest'
import type { PagedOperationId } from './client.ts'
import { createClient } from './create-client.ts'

const client = createClient({ url: 'http://127.0.0.1:8080' })

expectTypeOf(client.check({ resource: '/x' })).resolves.toEqualTypeOf<CheckAnswer>()
expectTypeOf(client.call('listVersions')).resolves.toEqualTypeOf<Page<Version>>()
expectTypeOf(client.call('deleteTier', { parameters: { name: 'a' } })).resolves.toEqualTypeOf<undefined>()
expectTypeOf(client.items('listOverrides')).toExtend<AsyncIterable<Stored<object>>>()
expectTypeOf<'listRateLimits' | 'listTiers' | 'listAudit'>().toExtend<PagedOperationId>()

// @ts-expect-error an operation that takes a name is called with one
client.call('deleteTier')
// @ts-expect-error the body is that of the operation
client.call('reset', { body: { colour: 'red' } })
// @ts-expect-error there is no such parameter
client.call('listVersions', { parameters: { colour: 'red' } })
// @ts-expect-error there is no such operation
client.call('nothing')
// @ts-expect-error what has no pages has no items
client.items('livez')
// @ts-expect-error what does not go on is no stream
client.stream('livez')
