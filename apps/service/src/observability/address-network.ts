import { isIPv6 } from 'node:net'

const GROUPS = 8
const NETWORK_GROUPS = 4
const MAPPED = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

/**
 * What an address is counted as: IPv4 as it is, IPv6 by its network of 64 bits (`2001:db8:0:1::/64`), IPv4 in IPv6 form as IPv4.
 * What is no address stands for itself.
 */
export function addressNetwork(address: string): string {
  if (!isIPv6(address) || !URL.canParse(`http://[${address}]`)) return address
  const { hostname } = new URL(`http://[${address}]`)
  const [, high, low] = MAPPED.exec(hostname) ?? []
  if (high !== undefined && low !== undefined) return dotted(Number.parseInt(high, 16), Number.parseInt(low, 16))
  const network = groupsOf(hostname.slice(1, -1)).slice(0, NETWORK_GROUPS).join(':')
  return new URL(`http://[${network}::]`).hostname.slice(1, -1).concat('/64')
}

function groupsOf(compressed: string): readonly string[] {
  const [before = '', after] = compressed.split('::')
  const first = before === '' ? [] : before.split(':')
  if (after === undefined) return first
  const last = after === '' ? [] : after.split(':')
  return [...first, ...Array.from({ length: GROUPS - first.length - last.length }, () => '0'), ...last]
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}
