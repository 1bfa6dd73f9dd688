import type { NumberLeaseRequest, NumberLeases } from '@sluice/config-store'
import type { RedisLink } from './redis-link.ts'

/**
 * Looks for the number that the holder has, else for one that nobody has, and keeps it for some time. One key for each number
 * that is taken. No commands are used but those that the counters need as well.
 */
const TAKE = `
local free = false
for number = 0, tonumber(ARGV[1]) - 1 do
  local key = KEYS[1] .. number
  local holder = redis.call('MGET', key)[1]
  if holder == ARGV[2] then
    redis.call('PEXPIRE', key, ARGV[3])
    return number
  end
  if not holder and not free then free = number end
end
if not free then return -1 end
redis.call('PSETEX', KEYS[1] .. free, ARGV[3], ARGV[2])
return free
`

/** Numbers in Redis. All nodes with one prefix share them. */
export function redisNumbers(link: RedisLink, prefix: string): Pick<NumberLeases, 'take'> {
  return {
    async take({ name, count, holder, leaseMs }: NumberLeaseRequest) {
      // The braces keep all of them in one slot of a cluster, where a script may touch them.
      const number = await link.run(TAKE, `{${prefix}:${name}}:`, [String(count), holder, String(leaseMs)])
      return typeof number === 'number' && number >= 0 ? number : undefined
    },
  }
}
