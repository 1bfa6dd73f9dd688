const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
const IPV6_GROUP = /^[\dA-Fa-f]{1,4}$/
const LONGEST_IPV6 = 45
const IPV6_GROUPS = 8

/**
 * Whether `text` is one IPv4 address in dotted decimal without leading zeros, or one IPv6 address (RFC 4291; the last 32
 * bits may be dotted decimal). No port, prefix length, brackets, zone or spaces.
 */
export function isIpAddress(text: string): boolean {
  return IPV4.test(text) || isIpv6(text)
}

function isIpv6(text: string): boolean {
  if (text.length > LONGEST_IPV6) return false
  const [head = '', tail, ...more] = text.split('::')
  if (more.length > 0) return false
  const groupsOfTail = tail === undefined ? 0 : countGroups(tail, true)
  const groups = countGroups(head, tail === undefined) + groupsOfTail
  // `::` stands for at least one group.
  return tail === undefined ? groups === IPV6_GROUPS : groups < IPV6_GROUPS
}

/** Groups of 16 bits in `part`, NaN when one is malformed. `isEnd`: dotted decimal may stand last, for two groups. */
function countGroups(part: string, isEnd: boolean): number {
  if (part === '') return 0
  const groups = part.split(':')
  const last = groups.at(-1) ?? ''
  const hasIpv4 = isEnd && IPV4.test(last)
  const plain = hasIpv4 ? groups.slice(0, -1) : groups
  if (!plain.every((group) => IPV6_GROUP.test(group))) return Number.NaN
  return plain.length + (hasIpv4 ? 2 : 0)
}
