import { ClientError } from '../errors/client-error.ts'

/** An event of a stream of server-sent events. */
export interface StreamEvent {
  /** `message` if the stream does not say. */
  readonly type: string
  readonly data: string
}

const LINE_END = /\r\n|\r|\n/

/** Maximum length of an event: a stream without line ends must not fill the memory. */
const LONGEST_EVENT = 1_048_576

/**
 * Parses a stream of server-sent events, in chunks of any length, as defined by the HTML standard. Ids and retry times
 * are ignored: a client that reconnects starts with the events from then on.
 */
export class EventStreamReader {
  #rest = ''
  #type = ''
  #data: string[] = []
  #size = 0

  /** Takes the next chunk; returns the events that it completes. Throws a `ClientError` if an event is too long. */
  push(text: string): StreamEvent[] {
    const events: StreamEvent[] = []
    const whole = this.#rest + text
    // A carriage return at the end may be the first half of a line end.
    const open = whole.endsWith('\r') ? whole.length - 1 : whole.length
    const lines = whole.slice(0, open).split(LINE_END)
    this.#rest = lines.pop()! + whole.slice(open)
    for (const line of lines) this.#take(line, events)
    if (this.#rest.length + this.#size > LONGEST_EVENT) throw tooLong()
    return events
  }

  #take(line: string, events: StreamEvent[]): void {
    if (line === '') {
      if (this.#data.length > 0) events.push({ type: this.#type || 'message', data: this.#data.join('\n') })
      this.#type = ''
      this.#data = []
      this.#size = 0
      return
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') this.#type = value
    if (field !== 'data') return
    this.#data.push(value)
    this.#size += value.length
  }
}

function tooLong(): ClientError {
  const detail = `An event has more than ${LONGEST_EVENT} characters. Check the proxies in front of the service.`
  return new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { detail })
}
