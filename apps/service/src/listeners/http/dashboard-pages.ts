import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FileAnswer } from '../../operations/handler.ts'
import type { DashboardFile, DashboardFiles } from './dashboard-files.ts'
import { BUILD_COMMAND } from './dashboard-files.ts'
import type { Endpoint } from './endpoints.ts'
import type { OperationRecord } from './request-observer.ts'
import { observed } from './request-observer.ts'
import type { Found } from './router.ts'

/** Nothing but what the service itself serves, and no script that was not built into it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "require-trusted-types-for 'script'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

const PAGE_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
}

const INDEX = 'index.html'

/** Below these are the API and files: what is not there is a problem document, also for browsers. */
const API_PATH = /^\/(?:admin|assets|auth|internal|v1|json|metrics|livez|readyz|openapi\.json)(?:\/|$)/

/** Routes of the page: plain segments without an extension. */
const PAGE_PATH = /^\/(?:[\w~@:%+-]+(?:\/[\w~@:%+-]+){0,7}\/?)?$/

const NOT_BUILT: FileAnswer = textAnswer(
  503,
  `The dashboard is not built. In the repository, run:\n\n  ${BUILD_COMMAND}\n\nand start the service again.\n`,
)

/**
 * Finds what a browser asks for that is no operation: a file of the dashboard by its exact name, or the page itself for
 * its client-side routes. Other requests are left to the router. `files`: undefined when the dashboard was not built.
 */
export function dashboardPages(
  files: DashboardFiles | undefined,
  record?: OperationRecord,
): (request: IncomingMessage) => Found<Endpoint> | undefined {
  const found = (answerTo: (headers: IncomingHttpHeaders) => FileAnswer): Found<Endpoint> => ({
    params: {},
    target: {
      name: 'GET /',
      inFlightLimit: undefined,
      admit: undefined,
      decode: () => ({ ok: true, parameters: {}, precondition: undefined }),
      narrow: undefined,
      body: undefined,
      handle: observed(({ headers }) => answerTo(headers), record),
      hasRequestId: false,
    },
  })
  const pages = new Map<number, DashboardFile>()
  /** The page for routes of this depth, whose links lead to the same files. */
  const pageOf = (index: DashboardFile, path: string): DashboardFile => {
    const depth = path.split('/').length - 2
    let page = pages.get(depth)
    if (page === undefined) {
      page = depth === 0 ? index : moved(index, depth)
      pages.set(depth, page)
    }
    return page
  }
  return ({ method, url = '', headers }) => {
    if (method !== 'GET' && method !== 'HEAD') return undefined
    const path = url.split(/[?#]/, 1)[0] ?? ''
    const isPage = path === '/' || (PAGE_PATH.test(path) && !API_PATH.test(path) && takesHtml(headers))
    if (files === undefined) return isPage ? found(() => NOT_BUILT) : undefined
    const index = files.get(INDEX)
    if (isPage && index !== undefined) return found((asked) => fileAnswer(pageOf(index, path), asked, PAGE_HEADERS))
    const file = path.startsWith('/') ? files.get(path.slice(1)) : undefined
    return (
      file && found((asked) => fileAnswer(file, asked, file.contentType.startsWith('text/html') ? PAGE_HEADERS : {}))
    )
  }
}

function takesHtml({ accept }: IncomingHttpHeaders): boolean {
  return accept?.includes('text/html') === true
}

/** The page with `../` before its own files, so that they are found from a route further down. */
function moved({ bytes, contentType }: DashboardFile, depth: number): DashboardFile {
  const up = '../'.repeat(depth)
  const text = bytes.toString().replaceAll(/\b(src|href)="\.\//g, `$1="${up}`)
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  return { bytes: Buffer.from(text), br: undefined, gzip: undefined, contentType, etag, isHashed: false }
}

function fileAnswer(
  file: DashboardFile,
  headers: IncomingHttpHeaders,
  more: Readonly<Record<string, string>>,
): FileAnswer {
  const common = {
    ETag: file.etag,
    Vary: 'Accept-Encoding',
    // Browsers request a page each time, so that a new version of the service brings its own.
    'Cache-Control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    ...more,
  }
  if (headers['if-none-match']?.includes(file.etag) === true) {
    return { status: 304, headers: common, bytes: Buffer.alloc(0) }
  }
  const [bytes, encoding] = encodedFor(file, headers['accept-encoding'])
  const described = { 'Content-Type': file.contentType, 'Content-Length': String(bytes.length) }
  const encoded = encoding === undefined ? {} : { 'Content-Encoding': encoding }
  return { status: 200, headers: { ...described, ...encoded, ...common }, bytes }
}

function encodedFor(file: DashboardFile, accepted: unknown): readonly [Buffer, 'br' | 'gzip' | undefined] {
  const text = typeof accepted === 'string' ? accepted : ''
  if (file.br !== undefined && takes(text, 'br')) return [file.br, 'br']
  if (file.gzip !== undefined && takes(text, 'gzip')) return [file.gzip, 'gzip']
  return [file.bytes, undefined]
}

/** Whether an encoding is in an `Accept-Encoding` header with a weight above 0. */
function takes(accepted: string, encoding: string): boolean {
  return accepted.split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

function textAnswer(status: number, text: string): FileAnswer {
  const bytes = Buffer.from(text)
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': String(bytes.length) }
  return { status, headers: { ...headers, 'Cache-Control': 'no-store' }, bytes }
}
