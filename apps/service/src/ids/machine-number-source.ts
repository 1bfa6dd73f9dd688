import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Random } from '@sluice/core'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import type { LateConfigStore } from '../config/late-config-store.ts'
import type { RedisLink } from '../config/redis-connection.ts'
import { connectRedis } from '../config/redis-connection.ts'
import { drawHex } from '../random-bytes.ts'
import type { Settings } from '../settings.ts'
import { MachineNumbers } from './machine-number-leases.ts'
import type { MachineCells } from './machine-numbers.ts'
import { MACHINE_NUMBERS } from './machine-numbers.ts'
import { redisNumbers } from './redis-machine-numbers.ts'

/** What the numbers of a process are found with. */
export interface NodeNumbersParts {
  readonly settings: Settings
  readonly cells: MachineCells
  readonly database: LateConfigStore
  readonly secureRandom: Random
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

/** Gives the threads of a process the numbers that they make ids with, for as long as it runs. */
export interface NodeNumbers {
  /** Resolves after the first try, whether it succeeded or not. */
  start(): Promise<void>
  stop(): Promise<void>
}

const HOLDER_BYTES = 16

/**
 * Numbers that no other node has, those that the settings give if they do: leased from Redis, else from the database that nodes
 * share. A process that shares nothing has no other nodes, and takes what it is given, or begins with 0.
 */
export function nodeNumbers(parts: NodeNumbersParts): NodeNumbers {
  const { settings, database, secureRandom } = parts
  const { machine, redis, databaseUrl, threads } = settings
  if (redis === undefined && databaseUrl === undefined) return ownNumbers(parts)
  const common = {
    ...parts,
    count: threads,
    holder: machine === undefined ? drawHex(secureRandom, HOLDER_BYTES) : placeOf(settings),
    // By chance, so that a node that is new does not ask for what another has when nobody remembers who has what.
    first: machine ?? secureRandom.nextUint32() % MACHINE_NUMBERS,
    isGiven: machine !== undefined,
  }
  if (redis === undefined) return new MachineNumbers({ ...common, leases: database.numbers })
  let link: RedisLink | undefined
  let numbers: MachineNumbers | undefined
  return {
    async start() {
      link = await connectRedis(redis, parts.sleep)
      numbers = new MachineNumbers({ ...common, leases: redisNumbers(link, redis.prefix) })
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

function ownNumbers({ settings, cells }: NodeNumbersParts): NodeNumbers {
  const { machine = 0, threads } = settings
  return {
    start() {
      for (let thread = 0; thread < threads; thread++) {
        cells.give(thread, (machine + thread) % MACHINE_NUMBERS, Number.POSITIVE_INFINITY)
      }
      return Promise.resolve()
    },
    stop: () => Promise.resolve(),
  }
}
