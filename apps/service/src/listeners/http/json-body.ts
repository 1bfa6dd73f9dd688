import { isUtf8 } from 'node:buffer'
import type { FieldProblem } from '@sluice/contract'
import { pointerTo } from '@sluice/core/internal'
import type { Answer } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'
import type { RequestHead } from './request-body.ts'

/** The value in a body, or the answer to give instead. */
export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly answer: Answer }

/** Levels of lists and objects in each other; deeper it is refused in any case, by whoever compares it with its form. */
const DEEPEST = 64

const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*"?utf-?8"?[\t ]*)?;?$/i

/** A body of so many bytes is parsed in a moment, whatever is in it; every check is one. */
const SOON_PARSED_BYTES = 16_384

/**
 * The value in the bytes of a body, which are JSON in UTF-8. Where a name appears twice in an object, the last counts.
 */
export function parseJsonBody(body: Buffer): JsonBody {
  if (body.length > SOON_PARSED_BYTES && isTooDeep(body)) return TOO_DEEP
  const text = body.toString()
  // Bytes that are no UTF-8 become this character; only then is it worth looking at them once more.
  if (text.includes('\ufffd') && !isUtf8(body)) return notJson('bytes that are not UTF-8')
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return notJson(body.length === 0 ? 'an empty body' : `${body.length} bytes that are not JSON${placeOf(error)}`)
  }
}

/**
 * The answer to a body that is not said to be uncompressed `application/json`; undefined for one that is. The check also keeps web
 * pages out: a browser asks before it sends JSON to another origin.
 */
export function rejectType({ contentType, isEncoded }: RequestHead): Answer | undefined {
  if (contentType !== 'application/json' && !JSON_TYPE.test(contentType ?? '')) {
    return unsupported(`Received ${contentType === undefined ? 'no Content-Type' : 'another Content-Type'}.`)
  }
  return isEncoded ? unsupported('Received a Content-Encoding.') : undefined
}

function unsupported(received: string): Answer {
  return problemAnswer('SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE', {
    detail: `${received} Send the body as JSON in UTF-8, uncompressed, with the header "Content-Type: application/json".`,
    headers: { Accept: 'application/json' },
  })
}

/** The answer to a body of more than `maxBytes`. */
export function tooLarge(maxBytes: number): Answer {
  const detail = `Received more than ${maxBytes} bytes, which is the most that is read here. Send a smaller body.`
  return problemAnswer('SLUICE_HTTP_TOO_LARGE', { detail })
}

const TOO_DEEP: JsonBody = {
  ok: false,
  answer: problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `Received lists and objects in each other, more than ${DEEPEST} levels deep. Nothing that is taken here is.`,
    errors: [{ path: '', received: `more than ${DEEPEST} levels`, expected: `at most ${DEEPEST} levels` }],
  }),
}

function notJson(received: string): JsonBody {
  const errors = [{ path: '', received, expected: 'a JSON text in UTF-8' }]
  const detail = `Received ${received}. Send one JSON object in UTF-8.`
  return { ok: false, answer: problemAnswer('SLUICE_HTTP_INVALID_JSON', { detail, errors }) }
}

/** Where the parser stopped, when it says so. Only the number is taken: the message quotes the body. */
function placeOf(error: unknown): string {
  const position = /at position (\d+)/.exec(String(error))?.[1]
  return position === undefined ? '' : `, from byte ${position} on`
}

/** Members that an object of a body may have: many times what any form has names for, or callers have names of their own. */
const MOST_MEMBERS = 1000

/** Entries that a list may have: more than the rules that fit into the largest body. */
const MOST_ENTRIES = 100_000

/**
 * The first part of a body that is larger than any form has room for; undefined when there is none. To compare a body with its form is
 * to find words for everything that is wrong with it: in a body that is made for it that takes hundreds of times as long as
 * this.
 */
export function oversizedPart(body: unknown): FieldProblem | undefined {
  return oversized(body, '', 0)
}

function oversized(value: unknown, path: string, depth: number): FieldProblem | undefined {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return undefined
  const isList = Array.isArray(value)
  const names = isList ? undefined : Object.keys(value)
  const count = names?.length ?? (value as readonly unknown[]).length
  const [most, what] = isList ? [MOST_ENTRIES, 'a list'] : [MOST_MEMBERS, 'an object']
  if (count > most) return { path, received: `${what} of ${count}`, expected: `${what} of at most ${most}` }
  for (let index = 0; index < count; index++) {
    const name = names?.[index] ?? index
    const found = oversized((value as Readonly<Record<string | number, unknown>>)[name], '', depth + 1)
    if (found !== undefined) return { ...found, path: `${pointerTo(path, name)}${found.path}` }
  }
  return undefined
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_CLOSES = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_CLOSES = 0x7d

/**
 * Whether the text of a body nests lists and objects deeper than any form does. Looks at bytes, because to parse such a text takes
 * tens of times as long as to read it. What is no JSON may get either answer.
 */
export function isTooDeep(text: Uint8Array): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) at = endOfString(text, at)
    else if (byte === LIST_OPENS || byte === OBJECT_OPENS) depth++
    else if (byte === LIST_CLOSES || byte === OBJECT_CLOSES) depth--
    if (depth > DEEPEST) return true
  }
  return false
}

/** Where a string ends that begins at `start`; the end of the text when it does not. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}
