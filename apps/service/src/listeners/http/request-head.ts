import type { IncomingMessage } from 'node:http'

/** The headers that every request is looked at for. */
export interface RequestHead {
  /** Host, the first when there are several; undefined when there is none. */
  readonly host: string | undefined
  /** Whether Host is there more than once. */
  readonly hasSeveralHosts: boolean
  /** Content-Type, the first when there are several; undefined when there is none. */
  readonly contentType: string | undefined
  /** Content-Length, which the parser has checked; 0 when there is none. */
  readonly contentLength: number
  /** Whether a Content-Encoding other than `identity` is said. */
  readonly isEncoded: boolean
}

/**
 * Reads the headers of a request that every request is looked at for. `request.headers` knows them, too, but is made of all of
 * them when it is first asked for: that takes as long as everything else that is done here for a check.
 */
export function readHead({ rawHeaders }: IncomingMessage): RequestHead {
  let host: string | undefined
  let hasSeveralHosts = false
  let contentType: string | undefined
  let contentLength = 0
  let isEncoded = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    // No two of them are equally long.
    switch (name.length) {
      case HOST.length:
        if (!isNamed(name, HOST)) break
        if (host === undefined) host = rawHeaders[index + 1]!
        else hasSeveralHosts = true
        break
      case TYPE.length:
        if (contentType === undefined && isNamed(name, TYPE)) contentType = rawHeaders[index + 1]!
        break
      case LENGTH.length:
        if (isNamed(name, LENGTH)) contentLength = Number(rawHeaders[index + 1])
        break
      case ENCODING.length:
        if (isNamed(name, ENCODING) && rawHeaders[index + 1]!.toLowerCase() !== 'identity') isEncoded = true
        break
      default:
    }
  }
  return { host, hasSeveralHosts, contentType, contentLength, isEncoded }
}

const HOST = 'Host'
const TYPE = 'Content-Type'
const LENGTH = 'Content-Length'
const ENCODING = 'Content-Encoding'

/** Most clients write it as it is written here. */
function isNamed(name: string, wanted: string): boolean {
  return name === wanted || name.toLowerCase() === wanted.toLowerCase()
}
