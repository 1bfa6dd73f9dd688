import type { CheckRequest } from '@sluice/contract'

/** A request as Explain takes it. */
export type ExplainedRequest = Partial<CheckRequest>

/** What a text was read as. */
export interface PastedRequest {
  readonly request: ExplainedRequest
  /** What of the text says nothing about limits, or could not be used; one sentence each. */
  readonly notes: readonly string[]
}

/** Headers that name a caller, in lower case, and what they name. */
const CALLER_HEADERS: Readonly<Record<string, 'user' | 'tenant' | 'apiKey' | 'service' | 'region'>> = {
  'x-user-id': 'user',
  'x-user': 'user',
  'x-tenant-id': 'tenant',
  'x-tenant': 'tenant',
  'x-api-key': 'apiKey',
  'x-service': 'service',
  'x-region': 'region',
}

/** Options of curl that take a value which says nothing here. */
const OTHER_VALUE_OPTIONS = new Set([
  ...['-o', '--output', '-u', '--user', '-A', '--user-agent', '-e', '--referer', '-b', '--cookie', '-c', '-m'],
  ...['--max-time', '--connect-timeout', '--resolve', '-x', '--proxy', '--cacert', '--cert', '--key', '-w', '-T'],
  ...['--retry', '--limit-rate', '-K', '--interface', '--http2-max-streams', '--write-out', '--cookie-jar'],
])

const DATA_OPTIONS = new Set(['-d', '--data', '--data-raw', '--data-binary', '--data-ascii', '--json', '-F', '--form'])

/**
 * Reads what somebody pasted: a `curl` command, a request line with headers, a URL, a path, or the JSON of a check.
 * Undefined when it is none of these.
 */
export function readPasted(text: string): PastedRequest | undefined {
  const trimmed = text.trim()
  if (/^\$?\s*curl\s/.test(trimmed)) return fromCurl(trimmed.replace(/^\$\s*/, ''))
  if (trimmed.startsWith('{')) return fromJson(trimmed)
  const [first = '', ...headers] = trimmed.split(/\r?\n/)
  const line = /^([A-Z]{3,10})\s+(\S+)(?:\s+HTTP\/[\d.]+)?$/.exec(first)
  if (line !== null) return fromParts({ method: line[1]!, url: line[2]!, headers })
  if (headers.length === 0 && /^(?:https?:\/\/|\/)\S*$/i.test(first)) return fromParts({ url: first, headers: [] })
  return undefined
}

interface RequestParts {
  readonly method?: string | undefined
  readonly url: string
  readonly headers: readonly string[]
  readonly hasBody?: boolean
}

function fromParts({ method, url, headers, hasBody = false }: RequestParts): PastedRequest {
  const notes: string[] = []
  const request: { -readonly [Name in keyof ExplainedRequest]: ExplainedRequest[Name] } = {
    resource: pathOf(url),
    method: (method ?? (hasBody ? 'POST' : 'GET')).toUpperCase(),
  }
  for (const header of headers) {
    const [, name = '', value = ''] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(header) ?? []
    const lower = name.toLowerCase()
    const field = CALLER_HEADERS[lower]
    if (value === '') continue
    if (field !== undefined) request[field] = value
    else if (lower === 'x-forwarded-for') request.ip = value.split(',').at(-1)!.trim()
    else if (lower === 'x-real-ip') request.ip ??= value
    else if (lower === 'authorization') {
      notes.push('The Authorization header was left out: name the user or the key that it stands for.')
    }
  }
  return { request, notes }
}

/** The path of a URL, without query: rules are about paths. */
function pathOf(url: string): string {
  const withoutScheme = url.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
  const path = url.startsWith('/') ? url : withoutScheme.slice(withoutScheme.search(/[/?#]|$/))
  const bare = path.replace(/[?#].*$/s, '')
  return bare === '' ? '/' : bare
}

function fromCurl(command: string): PastedRequest | undefined {
  const words = shellWords(command)
  const parts: CurlParts = { headers: [], hasBody: false, asQuery: false }
  for (let index = 1; index < words.length; index++) {
    const { option, value } = splitOption(words[index]!)
    takeOption(parts, option, () => value ?? words[++index] ?? '')
  }
  const { url, method, headers, hasBody, asQuery } = parts
  return url === undefined ? undefined : fromParts({ method, url, headers, hasBody: hasBody && !asQuery })
}

interface CurlParts {
  method?: string
  url?: string
  readonly headers: string[]
  hasBody: boolean
  /** Whether data goes into the query. */
  asQuery: boolean
}

/** Takes over what an option says. `value` is called when the option has one. */
function takeOption(parts: CurlParts, option: string, value: () => string): void {
  switch (option) {
    case '-X':
    case '--request':
      parts.method = value()
      break
    case '-H':
    case '--header':
      parts.headers.push(value())
      break
    case '-I':
    case '--head':
      parts.method ??= 'HEAD'
      break
    case '-G':
    case '--get':
      parts.asQuery = true
      break
    case '--url':
      parts.url = value()
      break
    default:
      if (DATA_OPTIONS.has(option)) parts.hasBody = value() !== ''
      else if (OTHER_VALUE_OPTIONS.has(option)) value()
      else if (!option.startsWith('-')) parts.url ??= option
  }
}

/** `--request=POST` and `-XPOST` have their value with them. */
function splitOption(word: string): { readonly option: string; readonly value?: string } {
  const [, long, value] = /^(--[a-z0-9-]+)=(.*)$/s.exec(word) ?? []
  if (long !== undefined && value !== undefined) return { option: long, value }
  return /^-[XHdFoAebu].+/s.test(word) ? { option: word.slice(0, 2), value: word.slice(2) } : { option: word }
}

/** The words of a command as a shell splits them: quotes, backslashes, lines that go on. */
export function shellWords(command: string): readonly string[] {
  const words: string[] = []
  const pattern = /\\\r?\n|\s+|\$'((?:[^'\\]|\\.)*)'|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)|(['"])/gs
  let word: string | undefined
  for (const [all, ansi, single, double, escaped, plain, unclosed] of command.matchAll(pattern)) {
    if (/^(?:\\\r?\n|\s+)$/.test(all)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      const part = ansi?.replace(/\\(.)/gs, '$1') ?? single ?? double?.replace(/\\(["\\$`])/g, '$1')
      word = (word ?? '') + (part ?? escaped ?? plain ?? unclosed ?? '')
    }
  }
  return word === undefined ? words : [...words, word]
}

const FIELDS = ['resource', 'method', 'user', 'apiKey', 'ip', 'tenant', 'service', 'region', 'tier', 'tokens'] as const

const OTHER_NAMES: Readonly<Record<string, keyof ExplainedRequest>> = {
  userId: 'user',
  clientIp: 'ip',
  tenantId: 'tenant',
}

function fromJson(text: string): PastedRequest | undefined {
  let body: Readonly<Record<string, unknown>>
  try {
    body = JSON.parse(text) as typeof body
  } catch {
    return undefined
  }
  const request: Record<string, unknown> = {}
  const notes: string[] = []
  for (const [name, value] of Object.entries(body)) {
    const field = OTHER_NAMES[name] ?? name
    const isKnown = FIELDS.some((known) => known === field) || field === 'descriptors'
    if (isKnown) request[field] = value
    else notes.push(`"${name}" is no field of a check, and was left out.`)
  }
  return { request: request as ExplainedRequest, notes }
}
