import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { NumberLeaseRequest, NumberLeases } from '@sluice/config-store'
import type { Random } from '@sluice/core'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import type { LateConfigStore } from '../config/late-config-store.ts'
import type { RedisConnection } from '../config/redis-connection.ts'
import { connectRedis } from '../config/redis-connection.ts'
import type { Settings } from '../settings.ts'
import { hexFrom } from '../system.ts'
import { MachineNumberLeases } from './machine-number-leases.ts'
import type { MachineNumberTable } from './machine-numbers.ts'
import { MACHINE_NUMBERS } from './machine-numbers.ts'

/** What the numbers of a process are found with. */
export interface MachineNumberSourceParts {
  readonly settings: Settings
  readonly machineNumbers: MachineNumberTable
  readonly database: LateConfigStore
  readonly secureRandom: Random
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

/** Gives the threads of a process the numbers that they make ids with, for as long as it runs. */
export interface MachineNumberSource {
  /** Resolves after the first try, whether it succeeded or not. */
  start(): Promise<void>
  stop(): Promise<void>
}

const HOLDER_BYTES = 16

/**
 * Numbers that no other node has, those that the settings give if they do: leased from Redis, else from the database that nodes
 * share. A process that shares nothing has no other nodes, and takes what it is given, or begins with 0.
 */
export function machineNumberSource(parts: MachineNumberSourceParts): MachineNumberSource {
  const { settings, database, secureRandom } = parts
  const { machine, redis, databaseUrl, threads } = settings
  if (redis === undefined && databaseUrl === undefined) return ownNumbers(parts)
  const common = {
    ...parts,
    count: threads,
    holder: machine === undefined ? hexFrom(secureRandom, HOLDER_BYTES) : placeOf(settings),
    // By chance, so that a node that is new does not ask for what another has when nobody remembers who has what.
    first: machine ?? secureRandom.nextUint32() % MACHINE_NUMBERS,
    isGiven: machine !== undefined,
  }
  if (redis === undefined) return new MachineNumberLeases({ ...common, leases: database.numbers })
  let link: RedisConnection | undefined
  let numbers: MachineNumberLeases | undefined
  return {
    async start() {
      link = await connectRedis(redis, parts.sleep)
      numbers = new MachineNumberLeases({ ...common, leases: redisMachineNumbers(link, redis.prefix) })
      await numbers.start()
    },
    async stop() {
      await numbers?.stop()
      await link?.close()
    },
  }
}

/**
 * Where a node runs: a node that is given its number is the same one when it is started again there, and need not wait until
 * its lease has ended. The lock on the data folder sees to it that there is one at a time.
 */
function placeOf({ host, port, dataDir }: Settings): string {
  return `${hostname()} ${host}:${port} ${resolve(dataDir)}`
}

function ownNumbers({ settings, machineNumbers }: MachineNumberSourceParts): MachineNumberSource {
  const { machine = 0, threads } = settings
  return {
    start() {
      for (let thread = 0; thread < threads; thread++) {
        machineNumbers.give(thread, (machine + thread) % MACHINE_NUMBERS, Number.POSITIVE_INFINITY)
      }
      return Promise.resolve()
    },
    stop: () => Promise.resolve(),
  }
}

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
export function redisMachineNumbers(link: RedisConnection, prefix: string): Pick<NumberLeases, 'take'> {
  return {
    async take({ name, count, holder, leaseMs, wanted = -1, onlyWanted = false }: NumberLeaseRequest) {
      const args = [String(count), holder, String(leaseMs), String(wanted), onlyWanted ? '1' : '0']
      // The braces keep all of them in one slot of a cluster, where a script may touch them.
      const number = await link.run(TAKE, `{${prefix}:${name}}:`, args)
      return typeof number === 'number' && number >= 0 ? number : undefined
    },
  }
}
