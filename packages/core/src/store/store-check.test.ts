import { describe, expect, it } from 'vitest'
import { memoryStore } from './memory/memory-store.ts'
import { assertStore } from './store-check.ts'

describe('what is no store', () => {
  it.each<[string, unknown, string]>([
    ['an address', 'redis://localhost:6379', 'store: redisStore(url)'],
    ['a function', memoryStore, 'Call the function'],
    ['a promise', Promise.resolve(memoryStore()), 'await it first'],
    ['a client of node-redis', { sendCommand: () => undefined }, 'store: redisStore(client)'],
    ['a client of ioredis', { callBuffer: () => undefined }, 'store: redisStore(client)'],
    ['a client of valkey-glide', { customCommand: () => undefined }, 'store: redisStore(client)'],
    ['a store of another library', { increment: () => undefined }, 'of another library'],
    ['a number', 5, 'Leave it out'],
    ['null', null, 'Leave it out'],
  ])('%s is rejected with what to write', (_, value, phrase) => {
    expect(() => assertStore(value)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
    expect(() => assertStore(value)).toThrow(phrase)
  })

  it('does not get its password into a log', () => {
    expect(() => assertStore('redis://user:secret@localhost\n//secret')).toThrow('received "redis://..."')
    expect(() => assertStore('redis://user:secret@localhost\n//secret')).not.toThrow('secret')
  })
})

describe('a store', () => {
  it('is taken', () => {
    expect(() => assertStore(memoryStore())).not.toThrow()
  })
})
