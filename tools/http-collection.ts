/** A request of an `.http` file, as the HTTP clients of editors read it. */
export interface CollectedRequest {
  /** What stands after `###`. */
  readonly name: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Comments between the name and the request, without `# `. */
  readonly comments: readonly string[]
}

const VARIABLE = /^@(\w+) *= *(.*)$/gm
const PLACEHOLDER = /\{\{(\w+)\}\}/g
const REQUEST_LINE = /^([A-Z]+) (\S+)$/

/**
 * Reads an `.http` file. `values` take the place of the variables that the file declares.
 *
 * @throws Error for a part that is not a request, and for a variable that is not declared
 */
export function readHttpCollection(text: string, values: Readonly<Record<string, string>> = {}): CollectedRequest[] {
  const declared = Object.fromEntries([...text.matchAll(VARIABLE)].map(([, name, value]) => [name, value]))
  const variables: Readonly<Record<string, string>> = { ...declared, ...values }
  const filled = text.replaceAll(PLACEHOLDER, (_placeholder, name: string) => {
    if (variables[name] === undefined) throw new Error(`The variable {{${name}}} is not declared.`)
    return variables[name]
  })
  return filled.split(/^### /m).slice(1).map(readRequest)
}

function readRequest(part: string): CollectedRequest {
  const [name = '', ...lines] = part.trimEnd().split('\n')
  const start = lines.findIndex((line) => !line.startsWith('#'))
  const [, method, url] = REQUEST_LINE.exec(lines[start] ?? '') ?? []
  if (method === undefined || url === undefined) throw new Error(`"${name}" has no line such as: GET http://host/`)
  const blank = lines.indexOf('', start)
  const headerLines = lines.slice(start + 1, blank < 0 ? undefined : blank)
  return {
    name,
    method,
    url,
    headers: Object.fromEntries(headerLines.map(headerOf)),
    body: blank < 0 ? undefined : lines.slice(blank + 1).join('\n'),
    comments: lines.slice(0, start).map((line) => line.replace(/^# ?/, '')),
  }
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}
