import { credentialsIn, keyIn, singleLine } from '@sluice/middleware/internal'
import type { CallerRequest } from './caller.ts'

/** What a request presents to the gateway. */
export interface PresentedCredentials {
  /** The key or token. Undefined if there is none. */
  readonly secret: string | undefined
  /** The first header that has it, in lower case. */
  readonly header: string | undefined
  /** What is wrong. Undefined if nothing is. */
  readonly problem: string | undefined
  /** Headers with credentials of a scheme that is not the gateway's, names and values in turn: for the upstream. */
  readonly foreign: readonly string[]
}

const NONE: PresentedCredentials = { secret: undefined, header: undefined, problem: undefined, foreign: [] }

/** Schemes of `Authorization` that the gateway verifies. */
const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'apikey'])

/**
 * Reads the credentials in these headers. The one place that decides what is presented, in whatever spelling. Two
 * different ones are a problem: another party might choose the other.
 */
export function readCredentials(request: CallerRequest, headers: readonly string[]): PresentedCredentials {
  let secret: string | undefined
  let header: string | undefined
  let foreign = NONE.foreign
  for (const name of headers) {
    const lines = request.header(name)
    if (lines === undefined) continue
    const line = singleLine(lines)
    if (line === undefined) return broken(`The header "${name}" is there twice.`)
    let key: string | undefined
    if (name === 'authorization') {
      const credentials = credentialsIn(line)
      if (credentials !== undefined && !SCHEMES.has(credentials.scheme)) {
        foreign = [...foreign, ...passedOn(request, name, line)]
        continue
      }
      key = credentials?.key
    } else key = keyIn(line)
    if (key === undefined) return broken(`The header "${name}" has no key or token in it.`)
    if (secret !== undefined && secret !== key) return broken('There are two credentials.')
    secret = key
    header ??= name
  }
  return secret === undefined && foreign === NONE.foreign ? NONE : { secret, header, problem: undefined, foreign }
}

/**
 * The headers as they came, without keys of the gateway: for a route that leaves authentication to its upstream. Names
 * and values in turn.
 */
export function withoutKeys(
  request: CallerRequest,
  headers: readonly string[],
  isKey: (secret: string) => boolean,
): readonly string[] {
  const kept: string[] = []
  for (const name of headers) {
    const lines = request.header(name)
    if (lines === undefined || isHopByHop(request, name)) continue
    for (const line of typeof lines === 'string' ? [lines] : lines) {
      const key = (name === 'authorization' ? credentialsIn(line)?.key : undefined) ?? keyIn(line)
      if (key === undefined || !isKey(key)) kept.push(name, line)
    }
  }
  return kept
}

/** A header for the upstream, unless it is for this connection only. */
function passedOn(request: CallerRequest, name: string, line: string): readonly string[] {
  return isHopByHop(request, name) ? [] : [name, line]
}

/** Whether `Connection` declares a header as meant for this connection only. */
function isHopByHop(request: CallerRequest, name: string): boolean {
  const named = request.header('connection')
  if (named === undefined) return false
  return named
    .toString()
    .toLowerCase()
    .split(',')
    .some((token) => token.trim() === name)
}

function broken(problem: string): PresentedCredentials {
  return { ...NONE, problem }
}
