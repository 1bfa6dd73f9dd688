const NEEDLESSLY_ENCODED = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi

const SLASH = 0x2f

/**
 * A request target as router, limits and upstream see it: letters, digits and `-._~` that were encoded without need
 * are decoded in its path (RFC 3986, section 6.2.2.2), because all servers agree that this changes nothing. Everything
 * else stays as the client sent it: upstreams may depend on it, and where servers read it differently, the router
 * follows every reading.
 */
export function normalTarget(target: string): string {
  const first = target.indexOf('%')
  if (first < 0) return target
  const query = target.indexOf('?')
  if (query < 0) return decoded(target)
  return first > query ? target : decoded(target.slice(0, query)) + target.slice(query)
}

function decoded(path: string): string {
  return path.replace(NEEDLESSLY_ENCODED, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
}

/** The path of a request target: without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

/** How a route changes the target that it passes on. */
export interface TargetRewrite {
  readonly stripPrefix?: string
  readonly addPrefix?: string
}

/**
 * Makes the target that an upstream gets. Removes as many segments as `stripPrefix` has: every reading of a path that
 * leads to the route begins with these, so that the text does too.
 */
export function targetRewriter({ stripPrefix, addPrefix }: TargetRewrite): (target: string) => string {
  if (stripPrefix === undefined && addPrefix === undefined) return normalTarget
  const stripped = stripPrefix === undefined ? 0 : stripPrefix.split('/').filter((part) => part !== '').length
  const added = addPrefix ?? ''
  return (target) => added + withoutSegments(normalTarget(target), stripped)
}

/** A target without its first segments. Begins with one slash: two would be the beginning of a host to some. */
function withoutSegments(target: string, count: number): string {
  if (count === 0) return target
  const query = target.indexOf('?')
  const end = query < 0 ? target.length : query
  let at = 0
  for (let index = 0; index < count && at < end; index++) {
    const slash = target.indexOf('/', at + 1)
    at = slash < 0 || slash > end ? end : slash
  }
  while (at < end && target.charCodeAt(at) === SLASH) at++
  return `/${target.slice(at)}`
}
