import type { NumberLeases } from '@sluice/config-store'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { MachineNumberTable } from './machine-numbers.ts'
import { MACHINE_NUMBERS } from './machine-numbers.ts'

/** How the numbers of a process are found. */
export interface MachineNumberLeasesOptions {
  readonly machineNumbers: MachineNumberTable
  /** So many are needed, one for each thread. */
  readonly count: number
  readonly leases: Pick<NumberLeases, 'take'>
  /** Unique to this process among all that run. */
  readonly holder: string
  /** The number that the first thread asks for, 0 to 1023; each thread after it asks for the next. */
  readonly first: number
  /** Whether no other number will do, because the settings say so. */
  readonly isGiven: boolean
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

const LEASE_MS = 120_000

/** How long a number is used after it was asked for. The rest of the lease is for clocks of other nodes that are ahead. */
const USED_MS = 90_000

/** How long a number stays taken after the last id that was made with it. */
const UNUSED_MS = LEASE_MS - USED_MS

/** How long a stop waits for the leases to be ended: they end by themselves. */
const END_WITHIN_MS = 1000

const RENEW_EVERY_MS = 20_000

/** How soon it is tried again when a number could not be had. */
const RETRY_MS = 2000

/**
 * Leases a number for each thread, and renews it for as long as the process runs. When that fails for long, or another node has
 * the number, the threads find that they have none, and make no ids until one can be had again. When it stops in order, nobody
 * else gets its numbers before clocks of other nodes have passed the last id that was made with them, and not much later.
 */
export class MachineNumberLeases {
  readonly #options: MachineNumberLeasesOptions
  readonly #stopped = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #isTold = false

  constructor(options: MachineNumberLeasesOptions) {
    this.#options = options
  }

  /** Resolves after the first try, whether it succeeded or not. */
  async start(): Promise<void> {
    const isLeased = await this.#leaseAll()
    this.#running = this.#renew(isLeased)
  }

  /** No more ids may be made by then. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#running
    const { sleep } = this.#options
    const ended = new AbortController()
    const late = sleep(END_WITHIN_MS, ended.signal).catch(() => undefined)
    await Promise.race([this.#endLeases(), late])
    ended.abort()
    await late
  }

  /** Lets other nodes have the numbers sooner than if the process had failed. */
  async #endLeases(): Promise<void> {
    const { count, machineNumbers, nowMs } = this.#options
    try {
      for (let thread = 0; thread < count; thread++) {
        // One that has no number would only take one now.
        if (machineNumbers.usableAt(thread, nowMs()) >= 0) await this.#take(thread, UNUSED_MS)
      }
    } catch {
      // Whoever keeps them is away; they end by themselves.
    }
  }

  async #renew(wasLeased: boolean): Promise<void> {
    const { sleep } = this.#options
    const { signal } = this.#stopped
    let isLeased = wasLeased
    while (!signal.aborted) {
      try {
        await sleep(isLeased ? RENEW_EVERY_MS : RETRY_MS, signal)
      } catch {
        return
      }
      isLeased = await this.#leaseAll()
    }
  }

  async #leaseAll(): Promise<boolean> {
    const { count, log } = this.#options
    try {
      for (let thread = 0; thread < count; thread++) await this.#lease(thread)
      if (this.#isTold) log.info('leased a machine number for ids again')
      this.#isTold = false
      return true
    } catch (error) {
      if (!this.#isTold) log.warn('could not lease a machine number for ids', { error: errorFields(error) })
      this.#isTold = true
      return false
    }
  }

  async #lease(thread: number): Promise<void> {
    const { machineNumbers, nowMs } = this.#options
    const askedAtMs = nowMs()
    const number = await this.#take(thread, LEASE_MS)
    if (number === undefined) {
      // Not ours any more, however long it was meant to be.
      machineNumbers.withdraw(thread)
      throw this.#takenError(thread)
    }
    machineNumbers.give(thread, number, askedAtMs + USED_MS)
  }

  #takenError(thread: number): Error {
    if (!this.#options.isGiven) return new Error(`all ${MACHINE_NUMBERS} numbers are taken`)
    const number = this.#wanted(thread)
    return new Error(
      `another node has number ${number}: no two may have one --machine, and each thread after the first takes the next`,
    )
  }

  /** What it has or had last, else what it begins with. Whoever keeps the numbers may have lost all that it knew of them. */
  #wanted(thread: number): number {
    const { machineNumbers, first } = this.#options
    const number = machineNumbers.numberOf(thread)
    return number >= 0 ? number : (first + thread) % MACHINE_NUMBERS
  }

  async #take(thread: number, leaseMs: number): Promise<number | undefined> {
    const { leases, holder, isGiven } = this.#options
    return await leases.take({
      name: 'machine',
      count: MACHINE_NUMBERS,
      holder: `${holder}/${thread}`,
      leaseMs,
      wanted: this.#wanted(thread),
      onlyWanted: isGiven,
    })
  }
}
