import { isUtf8 } from 'node:buffer'
import type { Answer } from '../../operations/answer.ts'
import { problemAnswer } from '../../operations/problem-answer.ts'
import { DEEPEST, isTooDeep } from './body-shape.ts'
import type { RequestHead } from './request-head.ts'

/** The value in a body, or the answer to give instead. */
export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly answer: Answer }

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
export function refuseType({ contentType, isEncoded }: RequestHead): Answer | undefined {
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
