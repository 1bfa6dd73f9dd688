import { lookup } from 'node:dns/promises'
import { isIPv4 } from 'node:net'
import type { Random, Timers } from '@sluice/core'
import { retryDelayMs } from '@sluice/core/internal'

/** All addresses of a name. Rejects if it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** As the system resolves names: its hosts file, then DNS. */
export async function resolveBySystem(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}

export interface NameResolverParts {
  readonly hostname: string
  readonly everyMs: number
  readonly resolve: Resolve
  readonly timers: Timers
  readonly random: Random
  /** Called with the instances of the name, each with its addresses, whenever they have changed. */
  readonly onChange: (instances: readonly (readonly string[])[]) => void
  /** Called when resolution fails, and not again until it has succeeded. */
  readonly onFailure: (problem: string) => void
}

const FIRST_RETRY_MS = 500

/**
 * Follows the addresses of one name. When a query fails, the addresses known last stay.
 */
export class NameResolver {
  readonly #parts: NameResolverParts
  #known = ''
  #failures = 0
  #isClosed = false
  #cancel: () => void = () => undefined

  constructor(parts: NameResolverParts) {
    this.#parts = parts
  }

  /** Resolves after the first query, whether or not it succeeded. */
  start(): Promise<void> {
    return this.#query()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #query(): Promise<void> {
    const { hostname, everyMs, resolve, timers, random } = this.#parts
    try {
      const addresses = await resolve(hostname)
      if (this.#isClosed) return
      if (addresses.length === 0) throw new Error(`${hostname} has no addresses.`)
      this.#apply(addresses)
      this.#failures = 0
    } catch (error) {
      if (this.#isClosed) return
      if (this.#failures++ === 0) this.#parts.onFailure(error instanceof Error ? error.message : String(error))
    }
    const jitter = 0.9 + random.nextUint32() / 2 ** 32 / 5
    const backoffMs = retryDelayMs(this.#failures - 1, { firstMs: FIRST_RETRY_MS, longestMs: everyMs, random })
    const waitMs = this.#failures === 0 ? everyMs * jitter : Math.min(everyMs, backoffMs)
    this.#cancel = timers.schedule(waitMs, () => void this.#query())
  }

  #apply(addresses: readonly string[]): void {
    const instances = instancesOf(addresses)
    const text = JSON.stringify(instances)
    if (text === this.#known) return
    this.#known = text
    this.#parts.onChange(instances)
  }
}

/**
 * The instances that the addresses of a name stand for: one for each IPv4 address, or for each IPv6 address if there is
 * no other. One address of each family is one instance with two addresses, such as `localhost`.
 */
function instancesOf(addresses: readonly string[]): readonly (readonly string[])[] {
  // Sorted: servers return them in changing order.
  const all = [...new Set(addresses)].sort()
  const ipv4 = all.filter(isIPv4)
  if (ipv4.length === 1 && all.length === 2) return [[...ipv4, ...all.filter((address) => !isIPv4(address))]]
  return (ipv4.length === 0 ? all : ipv4).map((address) => [address])
}
