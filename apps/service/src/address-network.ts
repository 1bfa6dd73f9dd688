import { countedAddress } from '@sluice/core/internal'

/** Bits of an IPv6 address that make one caller, as the engine has it. */
export const IPV6_PREFIX_LENGTH = 64

/**
 * What an address is counted as: IPv4 as it is, IPv6 by its network of 64 bits (`2001:db8:0:1::/64`), IPv4 in IPv6 form as IPv4.
 * What is no address stands for itself.
 */
export function addressNetwork(address: string): string {
  return countedAddress(address, IPV6_PREFIX_LENGTH)
}
