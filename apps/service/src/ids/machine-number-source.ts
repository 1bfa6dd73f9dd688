import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { NumberLeaseRequest, NumberLeases } from '@sluice/config-store'
import type { Random } from '@sluice/core'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { hexFrom } from '../clock-and-random.ts'
import type { ReconnectingConfigStore } from '../config/reconnecting-config-store.ts'
import type { RedisConnection } from '../config/redis-connection.ts'
import { connectRedis } from '../config/redis-connection.ts'
import type { Settings } from '../settings/settings.ts'
import { MachineNumberLeases } from './machine-number-leases.ts'
import type { MachineNumberTable } from './machine-numbers.ts'
import { MACHINE_NUMBERS } from './machine-numbers.ts'

export interface MachineNumberSourceParts {
  readonly settings: Settings
  readonly machineNumbers: MachineNumberTable
  readonly database: ReconnectingConfigStore
  readonly secureRandom: Random
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

/** Assigns machine numbers to the threads of a process while it runs. */
export interface MachineNumberSource {
  /** Resolves after the first attempt, successful or not. */
  start(): Promise<void>
  stop(): Promise<void>
}

const HOLDER_BYTES = 16

/**
 * Unique machine numbers, fixed by the settings or free ones: leased from Redis, else from the shared database. A
 * process that shares neither has no other nodes, and uses the number in the settings, or 0.
 */
export function machineNumberSource(parts: MachineNumberSourceParts): MachineNumberSource {
  const { settings, database, secureRandom } = parts
  const { machine, redis, databaseUrl, threads } = settings
  if (redis === undefined && databaseUrl === undefined) return ownNumbers(parts)
  const common = {
    ...parts,
    count: threads,
    holder: machine === undefined ? hexFrom(secureRandom, HOLDER_BYTES) : placeOf(settings),
    // Random, so that a new node is unlikely to want the number of another after the leases were lost.
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
 * Identifies a node by where it runs. A node with a fixed number that restarts there gets it at once, without waiting
 * for its lease to expire. The lock on the data folder ensures that only one runs at a time.
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
 * Leases the number that the holder has, else the preferred one, else a free one. One key for each leased number. Uses
 * only commands that the counters need as well.
 *
 * KEYS[1]: prefix of all keys. ARGV: count of numbers, holder, lease in milliseconds, preferred number or -1, 1 if no
 * other number will do. Returns the number, or -1.
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

/** Leases in Redis, shared by all nodes with the same prefix. */
export function redisMachineNumbers(link: RedisConnection, prefix: string): Pick<NumberLeases, 'take'> {
  return {
    async take({ name, count, holder, leaseMs, wanted = -1, onlyWanted = false }: NumberLeaseRequest) {
      const args = [String(count), holder, String(leaseMs), String(wanted), onlyWanted ? '1' : '0']
      // The hash tag puts all keys into one slot of a cluster, as scripts require.
      const number = await link.run(TAKE, `{${prefix}:${name}}:`, args)
      return typeof number === 'number' && number >= 0 ? number : undefined
    },
  }
}
