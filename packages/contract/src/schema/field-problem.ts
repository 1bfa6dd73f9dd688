/** One thing that is wrong with a request. */
export interface FieldProblem {
  /**
   * Where: a JSON Pointer (RFC 6901) into the body, such as `/user`; empty for the body itself; `?` and the name for a
   * parameter of the query or the path.
   */
  readonly path: string
  /** What is there, in words. The text of an identity or a key is never repeated. */
  readonly received: string
  /** What should be there. */
  readonly expected: string
  /** Line of the text that was sent, counted from 1, where it was a text of several lines. */
  readonly line?: number
}

const LONGEST_SHOWN = 64

/** The pointer to a member of the body. Long names are cut: they are the sender's choice, and go into logs. */
export function pointerTo(name: string): string {
  const shown = name.length > LONGEST_SHOWN ? `${name.slice(0, LONGEST_SHOWN)}...` : name
  return `/${shown.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A value in words. Texts are quoted when they are short and `isPrivate` is false; otherwise only measured. */
export function describeReceived(value: unknown, isPrivate: boolean): string {
  if (typeof value === 'string') {
    if (value.length === 0) return 'an empty text'
    return isPrivate || value.length > LONGEST_SHOWN ? `a text of ${value.length} characters` : JSON.stringify(value)
  }
  if (value === undefined) return 'nothing'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
