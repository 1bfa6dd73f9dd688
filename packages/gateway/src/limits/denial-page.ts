import type { Denial } from '@sluice/middleware'
import type { Route } from '../config/compiled-config.ts'

type DenialConfig = NonNullable<Route['denial']>

const PLAIN_TEXT = 'text/plain; charset=utf-8'

const PLACEHOLDER = /\{(retryAfter|rule)\}/

/** What a denied request of a route gets, made ready once. */
export class DenialPage {
  readonly #status: number
  readonly #contentType: string | undefined
  /** Texts, and at odd places the names of what stands between them; undefined for the problem document. */
  readonly #parts: readonly string[] | undefined

  constructor({ status, contentType, body }: DenialConfig) {
    this.#status = status
    this.#contentType = body === undefined ? undefined : (contentType ?? PLAIN_TEXT)
    this.#parts = body?.split(PLACEHOLDER)
  }

  /** The denial with the status and body of the route. A store that is unavailable stays a 503. */
  apply(denial: Denial): Denial {
    const status = denial.decision.reason === 'unavailable' ? denial.status : this.#status
    if (this.#parts === undefined) {
      if (status === denial.status) return denial
      return { ...denial, status, body: JSON.stringify({ ...JSON.parse(denial.body), status }) }
    }
    const headers = { ...denial.headers, 'Content-Type': this.#contentType! }
    return { ...denial, status, headers, body: this.#fill(this.#parts, denial) }
  }

  /**
   * `{retryAfter}` is what the header says; empty where waiting does not help. `{rule}` is empty for a rule that
   * callers are not told of.
   */
  #fill(parts: readonly string[], { headers, decision }: Denial): string {
    const values: Readonly<Record<string, string>> = {
      retryAfter: headers['Retry-After'] ?? '',
      rule: decision.announce === false ? '' : decision.rule,
    }
    return parts.map((part, index) => (index % 2 === 0 ? part : values[part])).join('')
  }
}
