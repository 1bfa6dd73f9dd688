import type { DocumentTable } from '@sluice/config-store'
import type { RedisLink } from './redis-connection.ts'

/** A document that nobody changes for so long is forgotten. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000

/** A document is one string: its revision, a line feed, its body. No commands are used but those that the counters need as well. */
const GET = "return redis.call('MGET', KEYS[1])[1]"

/** ARGV: the revision that was seen, the body, and for how many milliseconds it is kept. Returns 1, or 0 when another is there. */
const PUT = `
local there = redis.call('MGET', KEYS[1])[1]
local revision = there and string.match(there, '^%d+') or '0'
if revision ~= ARGV[1] then return 0 end
redis.call('PSETEX', KEYS[1], ARGV[3], string.format('%d', ARGV[1] + 1) .. '\\n' .. ARGV[2])
return 1
`

/** Documents in Redis. All nodes with one prefix share them. */
export function redisDocuments(link: RedisLink, prefix: string): DocumentTable {
  const keyOf = (name: string): string => `${prefix}:document:${name}`
  return {
    async get(name) {
      const text = await link.run(GET, keyOf(name), [])
      if (typeof text !== 'string') return undefined
      const end = text.indexOf('\n')
      return { revision: Number(text.slice(0, end)), body: text.slice(end + 1) }
    },
    async put(name, body, revision) {
      return (await link.run(PUT, keyOf(name), [String(revision), body, String(KEPT_MS)])) === 1
    },
  }
}
