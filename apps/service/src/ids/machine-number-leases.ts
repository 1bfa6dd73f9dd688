import type { NumberLeases } from '@sluice/config-store'
import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { MachineNumberTable } from './machine-numbers.ts'
import { MACHINE_NUMBERS } from './machine-numbers.ts'

/** Options of {@link MachineNumberLeases}. */
export interface MachineNumberLeasesOptions {
  readonly machineNumbers: MachineNumberTable
  /** Number of threads; each needs one machine number. */
  readonly count: number
  readonly leases: Pick<NumberLeases, 'take'>
  /** Unique to this process among all that run. */
  readonly holder: string
  /** Preferred number of the first thread, 0 to 1023; each further thread prefers the next. */
  readonly first: number
  /** Whether the numbers are fixed by the settings. */
  readonly isGiven: boolean
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
}

const LEASE_MS = 120_000

/**
 * How long a number is used after its lease was requested. The rest of the lease allows for clock skew between nodes.
 */
const USED_MS = 90_000

/** How long a number stays leased after the last id created with it. */
const UNUSED_MS = LEASE_MS - USED_MS

/** How long a stop waits to end the leases; otherwise they expire. */
const END_WITHIN_MS = 1000

const RENEW_EVERY_MS = 20_000

/** Delay before the next attempt after a failure. */
const RETRY_MS = 2000

/**
 * Leases a machine number for each thread and renews it while the process runs. If that fails for too long, or another
 * node has the number, the threads create no ids until they have a number again. After a clean stop, other nodes get
 * the numbers as soon as their clocks have passed the last id created with them.
 */
export class MachineNumberLeases {
  readonly #options: MachineNumberLeasesOptions
  readonly #stopped = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #isTold = false

  constructor(options: MachineNumberLeasesOptions) {
    this.#options = options
  }

  /** Resolves after the first attempt, successful or not. */
  async start(): Promise<void> {
    const isLeased = await this.#leaseAll()
    this.#running = this.#renew(isLeased)
  }

  /** Call it when no more ids are created. */
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

  /** Ends the leases early, so that other nodes can use the numbers soon. */
  async #endLeases(): Promise<void> {
    const { count, machineNumbers, nowMs } = this.#options
    try {
      for (let thread = 0; thread < count; thread++) {
        // A thread without a number would lease one now.
        if (machineNumbers.usableAt(thread, nowMs()) >= 0) await this.#take(thread, UNUSED_MS)
      }
    } catch {
      // The store is unreachable; the leases expire.
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
      // Another node has it, so the lease is void.
      machineNumbers.withdraw(thread)
      throw this.#takenError(thread)
    }
    machineNumbers.give(thread, number, askedAtMs + USED_MS)
  }

  #takenError(thread: number): Error {
    if (!this.#options.isGiven) return new Error(`all ${MACHINE_NUMBERS} numbers are taken`)
    const number = this.#wanted(thread)
    return new Error(
      `another node has number ${number}: no two may have one --machine, and each thread after the first takes the ` +
        'next',
    )
  }

  /** The current or last number, else the preferred one. The store may have lost its leases. */
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
