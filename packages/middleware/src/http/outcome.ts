import type { DecisionLike } from '@sluice/contract'

/** The request may go on. */
export interface Admission {
  readonly allowed: true
  /** Undefined when it was not asked about, because `skip` said so. */
  readonly decision: DecisionLike | undefined
  /** To be set on the answer, whatever it will be. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds that it must wait for its turn first; 0 when it need not. */
  readonly delayMs: number
  /**
   * To be called once, when the answer has left or the connection has closed before that: `status` is that of the answer, 0 when
   * there was none. Undefined when nobody wants to know. Never throws or rejects.
   */
  readonly finish: ((status: number) => void) | undefined
}

/** The request must not go on. */
export interface Refusal {
  readonly allowed: false
  readonly decision: DecisionLike
  /** 429, or 503 when the store could not be asked and the rule says to refuse then. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A problem document (RFC 9457), as JSON. */
  readonly body: string
}

/** What is to become of a request. */
export type HttpOutcome = Admission | Refusal
