const SHOWN_LENGTH = 60

const SHOWN_PROPERTIES = 8

/** A short, one-line, safe picture of what stands in a document: it may be huge, or hold control characters. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'string') {
    return value.length <= SHOWN_LENGTH
      ? JSON.stringify(value)
      : `${JSON.stringify(value.slice(0, SHOWN_LENGTH))}... (${value.length} characters)`
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`
  if (typeof value !== 'object') return `a ${typeof value}`
  const names = Object.keys(value).slice(0, SHOWN_PROPERTIES).map(shortName)
  return names.length === 0 ? 'an object without properties' : `an object with ${names.join(', ')}`
}

function shortName(name: string): string {
  return /^[\w.$-]{1,40}$/.test(name) ? name : JSON.stringify(name.slice(0, 40))
}
