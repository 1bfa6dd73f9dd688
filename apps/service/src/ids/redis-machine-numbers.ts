import type { NumberLeaseRequest, NumberLeases } from '@sluice/config-store'
import type { RedisLink } from '../config/redis-connection.ts'

/**
 * Looks for the number that the holder has, else for the one that it wants, else for one that nobody has, and keeps it for some
 * time. One key for each number that is taken. No commands are used but those that the counters need as well.
 *
 * KEYS[1]: what all keys begin with. ARGV: how many numbers there are, the holder, for how many milliseconds, the number wanted
 * or -1, and 1 when no other will do. Returns the number, or -1.
 */
const TAKE = `
local count, holder, wanted = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[4])
local found = -1
if wanted >= 0 then
  local other = redis.call('MGET', KEYS[1] .. wanted)[1]
  if other == holder or (not other and ARGV[5] == '1') then found = wanted end
end
if found < 0 and ARGV[5] ~= '1' then
  for number = 0, count - 1 do
    local other = redis.call('MGET', KEYS[1] .. number)[1]
    if other == holder then
      found = number
      break
    end
    if not other and (found < 0 or number == wanted) then found = number end
  end
end
if found >= 0 then redis.call('PSETEX', KEYS[1] .. found, ARGV[3], holder) end
return found
`

/** Numbers in Redis. All nodes with one prefix share them. */
export function redisNumbers(link: RedisLink, prefix: string): Pick<NumberLeases, 'take'> {
  return {
    async take({ name, count, holder, leaseMs, wanted = -1, onlyWanted = false }: NumberLeaseRequest) {
      const args = [String(count), holder, String(leaseMs), String(wanted), onlyWanted ? '1' : '0']
      // The braces keep all of them in one slot of a cluster, where a script may touch them.
      const number = await link.run(TAKE, `{${prefix}:${name}}:`, args)
      return typeof number === 'number' && number >= 0 ? number : undefined
    },
  }
}
