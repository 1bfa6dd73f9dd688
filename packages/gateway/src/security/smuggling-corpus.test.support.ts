/** What a request that parsers read differently may lead to. */
export interface SmugglingCase {
  readonly title: string
  /** Sent on one connection. `/smuggled` is the path of the request that must never be seen. */
  readonly bytes: string
  /** `rejected`: nothing may reach the upstream. `normal`: one request does, in a form that has one reading only. */
  readonly expected: 'rejected' | 'normal'
}

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
const LENGTH = SMUGGLED.length

function post(lines: readonly string[], body: string): string {
  return `POST /outer HTTP/1.1\r\nHost: a\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`
}

/** A body in one chunk that holds the request. */
const CHUNKED = `${LENGTH.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`
/** An empty body, and the request after it. */
const ENDED = `0\r\n\r\n${SMUGGLED}`

const TE = 'Transfer-Encoding: chunked'

/** Length and encoding that contradict each other. */
const BOTH: readonly SmugglingCase[] = [
  ['length before encoding', [`Content-Length: ${LENGTH + 5}`, TE], ENDED],
  ['encoding before length', [TE, `Content-Length: ${LENGTH + 5}`], ENDED],
  ['length 0 and encoding', ['Content-Length: 0', TE], CHUNKED],
  ['encoding in upper case and length', ['TRANSFER-ENCODING: CHUNKED', 'Content-Length: 4'], ENDED],
].map(([title, lines, body]) => ({
  title: title as string,
  bytes: post(lines as string[], body as string),
  expected: 'rejected' as const,
}))

const LENGTHS: readonly SmugglingCase[] = [
  ['two lengths', ['Content-Length: 0', `Content-Length: ${LENGTH}`]],
  ['two lengths, the longer first', [`Content-Length: ${LENGTH}`, 'Content-Length: 0']],
  ['the same length twice', [`Content-Length: ${LENGTH}`, `content-length: ${LENGTH}`]],
  ['a list of lengths', [`Content-Length: 0, ${LENGTH}`]],
  ['a list of equal lengths', [`Content-Length: ${LENGTH}, ${LENGTH}`]],
  ['a plus sign', [`Content-Length: +${LENGTH}`]],
  ['a minus sign', ['Content-Length: -1']],
  ['hexadecimal', [`Content-Length: 0x${LENGTH.toString(16)}`]],
  ['a fraction', [`Content-Length: ${LENGTH}.0`]],
  ['an exponent', ['Content-Length: 3e1']],
  ['a space within', ['Content-Length: 3 5']],
  ['beyond 64 bits', ['Content-Length: 18446744073709551652']],
  ['nothing', ['Content-Length:']],
  ['letters', ['Content-Length: abc']],
].map(([title, lines]) => ({
  title: `length: ${title as string}`,
  bytes: post(lines as string[], SMUGGLED),
  expected: 'rejected' as const,
}))

const ENCODINGS: readonly SmugglingCase[] = [
  ['an unknown coding', ['Transfer-Encoding: xchunked']],
  ['a coding after chunked', ['Transfer-Encoding: chunked, identity']],
  ['chunked twice', ['Transfer-Encoding: chunked, chunked']],
  ['two lines, the last unknown', [TE, 'Transfer-Encoding: identity']],
  ['a quoted coding', ['Transfer-Encoding: "chunked"']],
  ['a vertical tab', ['Transfer-Encoding: \x0bchunked']],
  ['a null byte', ['Transfer-Encoding: chunked\x00']],
  ['a space before the colon', ['Transfer-Encoding : chunked']],
  ['a tab before the colon', ['Transfer-Encoding\t: chunked']],
  ['a line folded before the value', ['Transfer-Encoding:\r\n chunked']],
  ['a line folded in the name', ['Transfer\r\n -Encoding: chunked']],
  ['a byte above 127 in the name', ['Transfer-Encoding\xff: chunked']],
  ['a bare carriage return', ['X: y\rTransfer-Encoding: chunked']],
].map(([title, lines]) => ({
  title: `encoding: ${title as string}`,
  bytes: post(lines as string[], ENDED),
  expected: 'rejected' as const,
}))

const CHUNKS: readonly SmugglingCase[] = [
  ['a sign in the size', `+${LENGTH.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`],
  ['a prefix in the size', `0x${LENGTH.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`],
  ['an underscore in the size', `0_0\r\n\r\n${SMUGGLED}`],
  ['a size beyond 64 bits', `10000000000000000\r\n${SMUGGLED}`],
  ['no size', `\r\n\r\n${SMUGGLED}`],
  ['a bare line feed after the size', `${LENGTH.toString(16)}\n${SMUGGLED}\r\n0\r\n\r\n`],
  ['a bare line feed after the data', `${LENGTH.toString(16)}\r\n${SMUGGLED}\n0\r\n\r\n`],
  ['more data than the size', `1\r\n${SMUGGLED}\r\n0\r\n\r\n`],
  ['a bare line feed in an extension', `0;\n${SMUGGLED}\r\n\r\n`],
  ['a bare carriage return in an extension', `0;a\rb\r\n\r\n${SMUGGLED}`],
  ['a trailer that would change framing', `1\r\nx\r\n0\r\nContent-Length: ${LENGTH}\r\n${TE}\r\n\r\n${SMUGGLED}`],
  ['a forbidden trailer line', `0\r\nX y: z\r\n\r\n${SMUGGLED}`],
].map(([title, body]) => ({
  title: `chunks: ${title!}`,
  bytes: post([TE], body!),
  expected: 'rejected' as const,
}))

const HEADS: readonly SmugglingCase[] = [
  ['a bare line feed after a header', `POST /outer HTTP/1.1\r\nHost: a\nContent-Length: 0\r\n\r\n${SMUGGLED}`],
  ['a space before the first header', `GET /outer HTTP/1.1\r\n Host: a\r\n\r\n${SMUGGLED}`],
  ['a header without a colon', `GET /outer HTTP/1.1\r\nHost: a\r\nContent-Length\r\n\r\n${SMUGGLED}`],
  ['an empty header name', `GET /outer HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n${SMUGGLED}`],
  ['a folded header', `GET /outer HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n${SMUGGLED}`],
  ['another protocol version', `GET /outer HTTP/1.2\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['the protocol version in lower case', `GET /outer http/1.1\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['no protocol version', `GET /outer\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['a tab in the request line', `GET\t/outer HTTP/1.1\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['a space at the end of the request line', `GET /outer HTTP/1.1 \r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['a line end in the target', `GET /outer\r/x HTTP/1.1\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['an unknown method with a colon', `GE:T /outer HTTP/1.1\r\nHost: a\r\n\r\n${SMUGGLED}`],
  ['a null byte in a header', `GET /outer HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n${SMUGGLED}`],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
].map(([title, bytes]) => ({ title: `head: ${title!}`, bytes: bytes!, expected: 'rejected' as const }))

/** Read in one way by all, or passed on in a form that is. */
const NORMAL: readonly SmugglingCase[] = [
  ['a request in a body with a length', post([`Content-Length: ${LENGTH}`], SMUGGLED)],
  ['a request in a chunk', post([TE], CHUNKED)],
  ['extensions of chunks', post([TE], CHUNKED.replace('\r\n', ';a=b;c="d"\r\n'))],
  ['leading zeros in the size of a chunk', post([TE], `000${CHUNKED}`)],
  ['two spaces in the request line', 'GET  /outer HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['leading zeros in the length', post([`Content-Length: 000${LENGTH}`], SMUGGLED)],
  ['encoding in capitals', post(['transfer-encoding: Chunked'], CHUNKED)],
  ['GET with a body', post([`Content-Length: ${LENGTH}`], SMUGGLED).replace('POST', 'GET')],
  ['DELETE in chunks', post([TE], CHUNKED).replace('POST', 'DELETE')],
  ['OPTIONS in chunks', post([TE], CHUNKED).replace('POST', 'OPTIONS')],
  ['HEAD with a body', post([`Content-Length: ${LENGTH}`], SMUGGLED).replace('POST', 'HEAD')],
  ['an encoding that Connection names', post(['Connection: Transfer-Encoding', TE], CHUNKED)],
  ['a length that Connection names', post(['Connection: Content-Length', `Content-Length: ${LENGTH}`], SMUGGLED)],
  ['a length under a name with an underscore', post(['Content_Length: 5', TE], CHUNKED)],
  [
    'an upgrade with a body',
    post(['Connection: Upgrade', 'Upgrade: websocket', `Content-Length: ${LENGTH}`], SMUGGLED),
  ],
].map(([title, bytes]) => ({ title: title!, bytes: bytes!, expected: 'normal' as const }))

/** Every case. */
export const SMUGGLING_CASES: readonly SmugglingCase[] = [
  ...BOTH,
  ...LENGTHS,
  ...ENCODINGS,
  ...CHUNKS,
  ...HEADS,
  ...NORMAL,
]
