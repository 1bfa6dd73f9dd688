import { isUtf8 } from 'node:buffer'
import type { Answer } from './answer.ts'
import { DEEPEST, isTooDeep } from './body-shape.ts'
import { problemAnswer } from './problem-answer.ts'
import type { IncomingBody } from './request-body.ts'
import { discardBody, readBody } from './request-body.ts'
import type { RequestHead } from './request-head.ts'

/** The value in a body, or the answer to give instead. */
export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly answer: Answer }

const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*"?utf-?8"?[\t ]*)?;?$/i

/**
 * Reads the body of a request as JSON: `application/json`, UTF-8, not compressed, at most `maxBytes`. Where a name appears
 * twice in an object, the last counts. When the client goes away, `done` is not called.
 */
export function readJsonBody(incoming: IncomingBody, maxBytes: number, done: (body: JsonBody) => void): void {
  const refusal = refuseType(incoming.head)
  if (refusal !== undefined) {
    discardBody(incoming.request)
    done({ ok: false, answer: refusal })
    return
  }
  readBody(incoming, maxBytes, (body) => done(body === 'too-large' ? tooLarge(maxBytes) : parse(body)))
}

/** A body of so many bytes is parsed in a moment, whatever is in it; every check is one. */
const SOON_PARSED_BYTES = 16_384

function parse(body: Buffer): JsonBody {
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

// A check by media type also keeps web pages out: a browser asks before it sends JSON to another origin.
function refuseType({ contentType, isEncoded }: RequestHead): Answer | undefined {
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

function tooLarge(maxBytes: number): JsonBody {
  const detail = `Received more than ${maxBytes} bytes, which is the most that is read here. Send a smaller body.`
  return { ok: false, answer: problemAnswer('SLUICE_HTTP_TOO_LARGE', { detail }) }
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
