import type { Authenticator } from '../../auth/authenticator.ts'
import type { Principal } from '../../operations/handler.ts'
import { ReplyError } from './reply-writer.ts'

/** What a session needs. */
export interface SessionParts {
  readonly authenticator: Pick<Authenticator, 'authenticateKey'>
  readonly monotonicMs: () => number
  /** Whether clients must authenticate before they can use commands. */
  readonly needsKey: boolean
}

/** A key is looked at again after this time: it may have been revoked, or have ended. */
const KEY_VALID_MS = 1000

let lastId = 0

/** What a connection is about: who asks, in which protocol, under which name. */
export class RespSession {
  readonly id: number = ++lastId
  readonly remoteAddress: string
  protocol: 2 | 3 = 2
  name = ''
  /** Whether the connection closes after the replies to what has come. */
  isEnding = false
  readonly #parts: SessionParts
  #key: string | undefined
  #principal: Principal | undefined
  #checkedAtMs = 0

  constructor(parts: SessionParts, remoteAddress: string) {
    this.#parts = parts
    this.remoteAddress = remoteAddress
  }

  /** Who asks, by the key of the last `AUTH`. */
  get principal(): Principal | undefined {
    return this.#principal
  }

  /** Whether commands may be used now. */
  get hasAccess(): boolean {
    return !this.#parts.needsKey || this.#principal !== undefined
  }

  /** Takes a key. Throws {@link ReplyError} if it is not valid; the key before it is forgotten. */
  authenticate(key: string): void {
    this.#key = undefined
    this.#principal = undefined
    const { authenticator, monotonicMs } = this.#parts
    const who = authenticator.authenticateKey(key, { headers: {}, remoteAddress: this.remoteAddress }, 'none')
    if ('status' in who) {
      const { detail } = JSON.parse(who.body) as { readonly detail: string }
      throw new ReplyError(`${who.status === 401 ? 'WRONGPASS' : 'ERR'} ${detail}`)
    }
    this.#key = key
    this.#principal = who
    this.#checkedAtMs = monotonicMs()
  }

  /** Looks at the key again if it was not looked at for a while. Call it before commands are run. */
  refresh(): void {
    if (this.#key === undefined || this.#parts.monotonicMs() - this.#checkedAtMs < KEY_VALID_MS) return
    try {
      this.authenticate(this.#key)
    } catch (error) {
      // The next command is answered with NOAUTH.
      if (!(error instanceof ReplyError)) throw error
    }
  }

  /** Throws `NOAUTH` unless commands may be used. */
  requireAccess(): void {
    if (!this.hasAccess) throw new ReplyError('NOAUTH Authentication required. Send AUTH with an API key.')
  }

  /** Back to how a connection begins. */
  reset(): void {
    this.#key = undefined
    this.#principal = undefined
    this.protocol = 2
    this.name = ''
  }
}
