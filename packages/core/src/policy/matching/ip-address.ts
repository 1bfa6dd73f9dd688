const LONGEST_TEXT = 45
const GROUPS = 8
const GROUP_BITS = 16
const WORD_BITS = 32
const COLON = 0x3a
const DOT = 0x2e
const ZERO = 0x30
const LETTER_A = 0x61
/** The bit that distinguishes lower-case from upper-case letters. */
const SMALL = 0x20
/** The third word of an IPv4-mapped IPv6 address, `::ffff:1.2.3.4`. */
const MAPPED = 0xff_ff

/** Groups of the address that is being parsed. Parsing is synchronous, so one array is enough. */
const groups = new Uint16Array(GROUPS)

/**
 * A reusable IP address: none has to be allocated per request. An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) is that
 * IPv4 address.
 */
export class IpAddress {
  isIpv4 = true
  /** 128 bits as four int32, most significant first; an IPv4 address uses only the last one. */
  word0 = 0
  word1 = 0
  word2 = 0
  word3 = 0

  /**
   * Parses one IPv4 address in dotted decimal without leading zeros, or one IPv6 address (RFC 4291; the last 32 bits
   * may be dotted decimal). No port, prefix length, brackets, zone or spaces. Returns false, and stays unchanged, for
   * anything else.
   */
  read(text: string): boolean {
    const ipv4 = readIpv4(text, 0)
    if (ipv4 >= 0) {
      this.#set(0, 0, 0)
      this.word3 = ipv4 | 0
      this.isIpv4 = true
      return true
    }
    if (!readGroups(text)) return false
    this.#set(wordOf(0), wordOf(2), wordOf(4))
    this.word3 = wordOf(6)
    this.isIpv4 = this.word0 === 0 && this.word1 === 0 && this.word2 === MAPPED
    if (this.isIpv4) this.word2 = 0
    return true
  }

  /** Clears all bits after the first `length`: 0 to 32, or 128 for IPv6. */
  mask(length: number): void {
    if (this.isIpv4) {
      this.word3 &= wordMask(length)
      return
    }
    this.#set(
      this.word0 & wordMask(length),
      this.word1 & wordMask(length - WORD_BITS),
      this.word2 & wordMask(length - 2 * WORD_BITS),
    )
    this.word3 &= wordMask(length - 3 * WORD_BITS)
  }

  equals(other: IpAddress): boolean {
    return (
      this.isIpv4 === other.isIpv4 &&
      this.word0 === other.word0 &&
      this.word1 === other.word1 &&
      this.word2 === other.word2 &&
      this.word3 === other.word3
    )
  }

  /** The canonical form: dotted decimal, or RFC 5952. */
  toString(): string {
    const { word0, word1, word2, word3 } = this
    if (this.isIpv4) return `${word3 >>> 24}.${(word3 >>> 16) & 255}.${(word3 >>> 8) & 255}.${word3 & 255}`
    const hex: string[] = []
    for (const word of [word0, word1, word2, word3]) {
      hex.push((word >>> GROUP_BITS).toString(16), (word & 0xff_ff).toString(16))
    }
    const { start, length } = longestZeros(hex)
    if (length < 2) return hex.join(':')
    return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
  }

  #set(word0: number, word1: number, word2: number): void {
    this.word0 = word0
    this.word1 = word1
    this.word2 = word2
  }
}

/** Parses an address; undefined if the string is not one. See {@link IpAddress.read} for the accepted forms. */
export function parseIp(text: string): IpAddress | undefined {
  const address = new IpAddress()
  return address.read(text) ? address : undefined
}

/** Mask of the bits of a word that belong to a prefix with `length` bits left; 0 if the prefix ended before. */
export function wordMask(length: number): number {
  if (length <= 0) return 0
  return length >= WORD_BITS ? -1 : -1 << (WORD_BITS - length)
}

/** Parses an IPv4 address from `start` to the end of `text`: 0 to 2^32 - 1, or -1 if it is not one. */
function readIpv4(text: string, start: number): number {
  let address = 0
  let at = start
  for (let part = 0; part < 4; part++) {
    if (part > 0 && text.charCodeAt(at++) !== DOT) return -1
    const first = at
    let value = 0
    for (let digit = digitAt(text, at); digit >= 0 && at - first < 4; digit = digitAt(text, at)) {
      value = value * 10 + digit
      at++
    }
    const hasLeadingZero = at - first > 1 && text.charCodeAt(first) === ZERO
    if (at === first || value > 255 || hasLeadingZero) return -1
    address = address * 256 + value
  }
  return at === text.length ? address : -1
}

/** Parses an IPv6 address into {@link groups}; false if it is not one. */
function readGroups(text: string): boolean {
  const { length } = text
  if (length < 2 || length > LONGEST_TEXT) return false
  let count = 0
  let gap = text.startsWith('::') ? 0 : -1
  let at = gap === 0 ? 2 : 0
  while (at < length) {
    const end = hexEnd(text, at)
    if (end < length && text.charCodeAt(end) === DOT) return readTail(text, at, { count, gap })
    if (count === GROUPS || end === at || end - at > 4) return false
    groups[count++] = hexValue(text, at, end)
    at = end + 1
    if (end === length) break
    // A group is followed by a colon and another group, or by two colons, once.
    if (text.charCodeAt(end) !== COLON || at === length) return false
    if (text.charCodeAt(at) !== COLON) continue
    if (gap >= 0) return false
    gap = count
    at++
  }
  return spread(count, gap)
}

/** Parses the dotted decimal that may replace the last two groups. */
function readTail(text: string, start: number, { count, gap }: { count: number; gap: number }): boolean {
  const ipv4 = count > GROUPS - 2 ? -1 : readIpv4(text, start)
  if (ipv4 < 0) return false
  groups[count] = ipv4 >>> GROUP_BITS
  groups[count + 1] = ipv4 & 0xff_ff
  return spread(count + 2, gap)
}

/** Expands `::`, which stands for at least one group. False if the number of groups is wrong. */
function spread(count: number, gap: number): boolean {
  if (gap < 0) return count === GROUPS
  if (count >= GROUPS) return false
  const zeros = GROUPS - count
  for (let group = GROUPS - 1; group >= gap; group--) groups[group] = group >= gap + zeros ? groups[group - zeros]! : 0
  return true
}

/** The longest run of zero groups, the first of equal ones. */
function longestZeros(hex: readonly string[]): { start: number; length: number } {
  const longest = { start: 0, length: 0 }
  let length = 0
  for (const [index, group] of hex.entries()) {
    length = group === '0' ? length + 1 : 0
    if (length <= longest.length) continue
    longest.length = length
    longest.start = index + 1 - length
  }
  return longest
}

function wordOf(group: number): number {
  return (groups[group]! << GROUP_BITS) | groups[group + 1]!
}

/** The decimal digit at a position, or -1, also past the end. */
function digitAt(text: string, at: number): number {
  if (at >= text.length) return -1
  const digit = text.charCodeAt(at) - ZERO
  return digit >= 0 && digit <= 9 ? digit : -1
}

/** End of the hexadecimal digits that start at a position. */
function hexEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && hexDigit(text.charCodeAt(at)) >= 0) at++
  return at
}

function hexValue(text: string, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) value = (value << 4) | hexDigit(text.charCodeAt(at))
  return value
}

/** The value of a hexadecimal digit, or -1. */
function hexDigit(unit: number): number {
  if (unit >= ZERO && unit <= ZERO + 9) return unit - ZERO
  const letter = (unit | SMALL) - LETTER_A
  return letter >= 0 && letter <= 5 ? letter + 10 : -1
}

/** Leading bits of an IPv6 address that identify a caller, unless options say otherwise: one customer has a /64. */
export const DEFAULT_IPV6_PREFIX_LENGTH = 64

/** Overwritten by every call. */
const counted = new IpAddress()

/**
 * The identity that an address counts as: IPv4 unchanged, IPv6 by its first `ipv6PrefixLength` bits
 * (`2001:db8:0:1::/64`), an IPv4-mapped address as IPv4. Networks are accepted too (`2001:db8:0:1::/64`). Any other
 * string counts as itself, and never collides with an address.
 */
export function countedAddress(text: string, ipv6PrefixLength: number): string {
  // Dotted decimal without leading zeros has only one spelling.
  if (!text.includes(':')) return text
  const slash = text.indexOf('/')
  if (!counted.read(slash < 0 ? text : text.slice(0, slash))) return text
  if (counted.isIpv4) return counted.toString()
  counted.mask(ipv6PrefixLength)
  return ipv6PrefixLength === 128 ? counted.toString() : `${counted.toString()}/${ipv6PrefixLength}`
}
