import type { Socket } from 'node:net'
import { parseIp } from '@sluice/core/internal'

/** First bytes of version 2. */
const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])
const TEXT_START = Buffer.from('PROXY ')

/** Longest header of version 1, with its line end. */
const LONGEST_TEXT = 107
const BINARY_HEAD = 16
/** Addresses and extensions; longer ones are no honest header. */
const LONGEST_EXTENSIONS = 4096

const TCP4 = 0x11
const TCP6 = 0x21
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a

/** A complete header. */
export interface ProxyHeader {
  /** Of the client. Undefined if the proxy speaks for itself, such as for health checks. */
  readonly address: string | undefined
  /** Length of the header. */
  readonly bytes: number
}

/**
 * Reads the header of the PROXY protocol, version 1 or 2, at the beginning of a connection. `incomplete`: more bytes
 * are needed. `invalid`: the connection must be closed.
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  if (isPrefix(bytes, SIGNATURE)) return bytes.length < BINARY_HEAD ? 'incomplete' : readBinary(bytes)
  if (isPrefix(bytes, TEXT_START)) return readText(bytes)
  return 'invalid'
}

/** Whether what came so far may become, or is, `start`. */
function isPrefix(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.subarray(0, length).equals(start.subarray(0, length))
}

function readBinary(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  const command = bytes[12]!
  const family = bytes[13]!
  const length = bytes.readUInt16BE(14)
  // Version 2 with the commands LOCAL and PROXY.
  if ((command !== 0x20 && command !== 0x21) || length > LONGEST_EXTENSIONS) return 'invalid'
  const end = BINARY_HEAD + length
  if (bytes.length < end) return 'incomplete'
  if (command === 0x20) return { address: undefined, bytes: end }
  if (family === TCP4 && length >= 12) {
    return { address: bytes.subarray(BINARY_HEAD, BINARY_HEAD + 4).join('.'), bytes: end }
  }
  if (family === TCP6 && length >= 36) {
    const groups: string[] = []
    for (let at = BINARY_HEAD; at < BINARY_HEAD + 16; at += 2) groups.push(bytes.readUInt16BE(at).toString(16))
    return { address: parseIp(groups.join(':'))!.toString(), bytes: end }
  }
  // The proxy cannot say, so nothing is known about the client.
  return family === 0 ? { address: undefined, bytes: end } : 'invalid'
}

function readText(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  const end = bytes.subarray(0, LONGEST_TEXT).indexOf(LINE_FEED)
  if (end < 0) return bytes.length < LONGEST_TEXT ? 'incomplete' : 'invalid'
  if (bytes[end - 1] !== CARRIAGE_RETURN) return 'invalid'
  const line = bytes.toString('latin1', 0, end - 1)
  const [, protocol, source, target, ...ports] = line.split(' ')
  if (protocol === 'UNKNOWN') return { address: undefined, bytes: end + 1 }
  const isValid =
    (protocol === 'TCP4' || protocol === 'TCP6') &&
    ports.length === 2 &&
    ports.every((port) => /^\d{1,5}$/.test(port)) &&
    isOf(protocol, source) &&
    isOf(protocol, target)
  return isValid ? { address: parseIp(source!)!.toString(), bytes: end + 1 } : 'invalid'
}

function isOf(protocol: 'TCP4' | 'TCP6', text: string | undefined): boolean {
  return text !== undefined && text.includes(':') === (protocol === 'TCP6') && parseIp(text) !== undefined
}

/** Reads the header of a connection, leaves what follows in the socket, and tells. Told `invalid` also at its end. */
export function acceptProxied(socket: Socket, done: (header: ProxyHeader | 'invalid') => void): void {
  let bytes: Buffer = Buffer.alloc(0)
  const finish = (header: ProxyHeader | 'invalid'): void => {
    socket.off('readable', onReadable).off('close', onClose)
    done(header)
  }
  const onClose = (): void => finish('invalid')
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    bytes = Buffer.concat([bytes, chunk])
    const header = readProxyHeader(bytes)
    if (header === 'incomplete') return
    if (header !== 'invalid' && header.bytes < bytes.length) socket.unshift(bytes.subarray(header.bytes))
    finish(header)
  }
  socket.on('readable', onReadable).on('close', onClose)
}
