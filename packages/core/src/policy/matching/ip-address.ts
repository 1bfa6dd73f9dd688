const LONGEST_TEXT = 45
const GROUPS = 8
const GROUP_BITS = 16
const WORD_BITS = 32
const COLON = 0x3a
const DOT = 0x2e
const ZERO = 0x30
const LETTER_A = 0x61
/** Sets the bit in which small letters differ from capital ones. */
const SMALL = 0x20
/** The third word of an IPv4 address written as an IPv6 one, `::ffff:1.2.3.4`. */
const MAPPED = 0xff_ff

/** The groups of the address that is being read; reading does not wait for anything. */
const groups = new Uint16Array(GROUPS)

/**
 * An IP address, which can be reused so that none has to be made for each request. An IPv4 address that is written
 * as an IPv6 one (`::ffff:1.2.3.4`) is that IPv4 address.
 */
export class IpAddress {
  isIpv4 = true
  /** 128 bits as four int32, the first bits first; an IPv4 address is in the last one only. */
  word0 = 0
  word1 = 0
  word2 = 0
  word3 = 0

  /**
   * Reads one IPv4 address in dotted decimal without leading zeros, or one IPv6 address (RFC 4291; the last 32 bits may
   * be dotted decimal). No port, prefix length, brackets, zone or spaces. False when it is none: then it is as it was
   * before.
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

  /** Clears all bits but the first `length` ones: 0 to 32, or 128 for IPv6. */
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

  /** The address in its one recommended form: dotted decimal, or as RFC 5952 has it. */
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

/** The address that a text is; undefined when it is none. See {@link IpAddress.read} for what may stand in it. */
export function parseIp(text: string): IpAddress | undefined {
  const address = new IpAddress()
  return address.read(text) ? address : undefined
}

/** The first bits of a word that belong to a prefix of which `length` bits are left; none when it has ended before. */
export function wordMask(length: number): number {
  if (length <= 0) return 0
  return length >= WORD_BITS ? -1 : -1 << (WORD_BITS - length)
}

/** The IPv4 address that `text` is from `start` to its end, 0 to 2^32 - 1; -1 when it is none. */
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

/** Reads an IPv6 address into {@link groups}; false when it is none. */
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
    // Behind a group stands a colon with another group, or two colons, once.
    if (text.charCodeAt(end) !== COLON || at === length) return false
    if (text.charCodeAt(at) !== COLON) continue
    if (gap >= 0) return false
    gap = count
    at++
  }
  return spread(count, gap)
}

/** Reads the dotted decimal that may stand for the last two groups. */
function readTail(text: string, start: number, { count, gap }: { count: number; gap: number }): boolean {
  const ipv4 = count > GROUPS - 2 ? -1 : readIpv4(text, start)
  if (ipv4 < 0) return false
  groups[count] = ipv4 >>> GROUP_BITS
  groups[count + 1] = ipv4 & 0xff_ff
  return spread(count + 2, gap)
}

/** Puts zeros where `::` stood, which is for at least one group. False when the number of groups is wrong. */
function spread(count: number, gap: number): boolean {
  if (gap < 0) return count === GROUPS
  if (count >= GROUPS) return false
  const zeros = GROUPS - count
  for (let group = GROUPS - 1; group >= gap; group--) groups[group] = group >= gap + zeros ? groups[group - zeros]! : 0
  return true
}

/** The longest run of groups that are zero, the first of several. */
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

/** The decimal digit at a place of a text, or -1; also behind its end. */
function digitAt(text: string, at: number): number {
  if (at >= text.length) return -1
  const digit = text.charCodeAt(at) - ZERO
  return digit >= 0 && digit <= 9 ? digit : -1
}

/** Where the hexadecimal digits end that begin at a place of a text. */
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

/** The hexadecimal digit that a code unit is, or -1. */
function hexDigit(unit: number): number {
  if (unit >= ZERO && unit <= ZERO + 9) return unit - ZERO
  const letter = (unit | SMALL) - LETTER_A
  return letter >= 0 && letter <= 5 ? letter + 10 : -1
}

/** Overwritten by every call. */
const counted = new IpAddress()

/**
 * The identity that an address is counted by: IPv4 as it is, IPv6 by its first `ipv6PrefixLength` bits
 * (`2001:db8:0:1::/64`), an IPv4 address in IPv6 form as IPv4. Networks may be given too (`2001:db8:0:1::/64`). What is
 * no address stands for itself: it is counted too, and cannot be mistaken for one.
 */
export function countedAddress(text: string, ipv6PrefixLength: number): string {
  // Dotted decimal without leading zeros has one spelling only.
  if (!text.includes(':')) return text
  const slash = text.indexOf('/')
  if (!counted.read(slash < 0 ? text : text.slice(0, slash))) return text
  if (counted.isIpv4) return counted.toString()
  counted.mask(ipv6PrefixLength)
  return ipv6PrefixLength === 128 ? counted.toString() : `${counted.toString()}/${ipv6PrefixLength}`
}
