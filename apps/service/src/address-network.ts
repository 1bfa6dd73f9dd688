import { countedAddress, DEFAULT_IPV6_PREFIX_LENGTH } from '@sluice/core/internal'

/**
 * The caller that an address counts for: an IPv4 address itself, an IPv6 address its /64 (`2001:db8:0:1::/64`), an
 * IPv4-mapped address as IPv4. Any other string is returned unchanged.
 */
export function addressNetwork(address: string): string {
  return countedAddress(address, DEFAULT_IPV6_PREFIX_LENGTH)
}

/** This machine. Its own proxies and programs come from here. */
export const LOOPBACK_NETWORKS: readonly string[] = ['127.0.0.0/8', '::1']
