/** What goes back to a client. */
export interface Answer {
  readonly status: number
  /** All headers but those that Node adds itself (`Date`, `Connection`, `Keep-Alive`). */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** On every answer: browsers must not guess another type of content than the one that is said. */
export const NO_SNIFF = { 'X-Content-Type-Options': 'nosniff' } as const

/** What a handler may add to an answer with a JSON body. */
export interface JsonAnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** `application/json` when left out. */
  readonly mediaType?: string
}

/** An answer whose body is `json` and a line end, so that the prompt of a terminal comes on a line of its own. */
export function jsonAnswer(status: number, json: string, options: JsonAnswerOptions = {}): Answer {
  const body = `${json}\n`
  const headers = {
    'Content-Type': options.mediaType ?? 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...options.headers,
  }
  return { status, headers, body }
}
