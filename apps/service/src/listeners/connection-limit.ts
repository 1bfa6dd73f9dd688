import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'
import { addressNetwork, LOOPBACK_NETWORKS } from '../address-network.ts'
import type { Settings } from '../settings/settings.ts'

/** Options of {@link ConnectionLimit}. */
export interface ConnectionLimitOptions {
  /** Maximum number of open connections from one address. */
  readonly perAddress: number
  /** Networks without a limit, as CIDR or single address: proxies that connect for many clients. */
  readonly exempt: readonly string[]
}

/** The limit of the settings. Listeners of a thread share one. */
export function connectionLimitOf(
  settings: Pick<Settings, 'maxConnectionsPerAddress' | 'trustedProxies'>,
): ConnectionLimit {
  const { maxConnectionsPerAddress: perAddress, trustedProxies } = settings
  return new ConnectionLimit({ perAddress, exempt: [...LOOPBACK_NETWORKS, ...trustedProxies] })
}

/** Bounds the open connections of one address, which for IPv6 is a network of 64 bits. */
export class ConnectionLimit {
  readonly #perAddress: number
  readonly #exempt: CidrTable<true>
  readonly #open = new Map<string, number>()

  constructor({ perAddress, exempt }: ConnectionLimitOptions) {
    this.#perAddress = perAddress
    // The settings were checked when they were read.
    this.#exempt = new CidrTable(exempt.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true })))
  }

  /**
   * Counts a connection from `address`. Returns what must be called when it is closed; undefined when there are too
   * many, and this one must be closed.
   */
  open(address: string): (() => void) | undefined {
    const parsed = parseIp(address)
    if (parsed !== undefined && this.#exempt.find(parsed).length > 0) return () => undefined
    const network = addressNetwork(address)
    const count = this.#open.get(network) ?? 0
    if (count >= this.#perAddress) return undefined
    this.#open.set(network, count + 1)
    return () => {
      const left = (this.#open.get(network) ?? 0) - 1
      if (left > 0) this.#open.set(network, left)
      else this.#open.delete(network)
    }
  }
}
