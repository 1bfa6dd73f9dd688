/** Plain data: what rule sets are made of. */
export type PlainData = null | boolean | number | string | readonly PlainData[] | { readonly [name: string]: PlainData }

/** Lists and objects up to this many characters stand on one line. */
const INLINE_LENGTH = 72

/** Objects with more properties than a window has do not: rules are easier to compare line by line. */
const INLINE_PROPERTIES = 3

/** Plain data as YAML. Properties that are undefined are left out. */
export function writeYaml(value: unknown): string {
  const data = JSON.parse(JSON.stringify(value)) as PlainData
  const lines = blockLines(data)
  return lines === undefined ? `${scalarOrFlow(data)}\n` : `${lines.join('\n')}\n`
}

/** The lines of a list or an object; undefined for what stands behind its key. */
function blockLines(value: PlainData): string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined
    return value.flatMap((item: PlainData) => {
      const lines = isInline(item) ? undefined : blockLines(item)
      if (lines === undefined) return [`- ${scalarOrFlow(item)}`]
      return lines.map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`))
    })
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return undefined
  return entries.flatMap(([name, part]) => {
    const lines = isInline(part) ? undefined : blockLines(part)
    if (lines === undefined) return [`${scalar(name)}: ${scalarOrFlow(part)}`]
    return [`${scalar(name)}:`, ...lines.map((line) => `  ${line}`)]
  })
}

/** Whether a value is short and flat enough for one line: a list of methods, the match of an exemption. */
function isInline(value: PlainData): boolean {
  if (typeof value !== 'object' || value === null) return true
  const parts: readonly PlainData[] = Object.values(value)
  if (!Array.isArray(value) && parts.length > INLINE_PROPERTIES) return false
  return parts.every((part) => typeof part !== 'object' || part === null) && scalarOrFlow(value).length <= INLINE_LENGTH
}

function scalarOrFlow(value: PlainData): string {
  if (typeof value === 'string') return scalar(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map(scalarOrFlow).join(', ')}]`
  const entries = Object.entries(value).map(([name, part]) => `${scalar(name)}: ${scalarOrFlow(part)}`)
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

/** What may stand without quotes everywhere, also within brackets. */
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./:*@+-]*$/

/** Words that would be read as something else than a text. */
const OTHER_KINDS = /^(?:null|true|false|yes|no|on|off|~|\.inf|\.nan)$/i

function scalar(text: string): string {
  const isPlain = (PLAIN.test(text) || /^\d+(?:\.\d+)?(?:ms|s|m|h|d|w)$/.test(text)) && !text.endsWith(':')
  return isPlain && !OTHER_KINDS.test(text) ? text : JSON.stringify(text)
}
