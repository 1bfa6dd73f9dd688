import { SluiceError } from '../errors.ts'
import { can } from '../options/option-form.ts'
import type { Store } from './store.ts'

const REDIS_STORE = 'redisStore of "sluice/redis"'

/** Throws `SLUICE_INVALID_OPTION`, with what to write instead, unless `store` is a store. */
export function assertStore(store: unknown): asserts store is Store {
  if (can(store, 'decide')) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"store" cannot be used',
    // An address may hold a password, which must not get into logs.
    received: typeof store === 'string' ? store.replace(/\/\/.*/s, '//...') : store,
    expected: 'a store, such as memoryStore() or redisStore("redis://localhost:6379")',
    action: adviceFor(store),
  })
}

function adviceFor(store: unknown): string {
  if (typeof store === 'string') return `Pass the address to ${REDIS_STORE}: store: redisStore(url).`
  if (typeof store === 'function') return 'Call the function: what it makes is the store.'
  if (can(store, 'then')) return 'It is a promise: await it first.'
  if (['sendCommand', 'callBuffer', 'customCommand'].some((method) => can(store, method))) {
    return `It is a client of Redis. Pass it to ${REDIS_STORE}: store: redisStore(client).`
  }
  if (can(store, 'increment')) return 'It is a store of another library, which counts in another way.'
  return 'Leave it out to count in the memory of this process.'
}
