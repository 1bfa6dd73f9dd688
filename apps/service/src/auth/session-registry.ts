import type { Logger, NowMs, Sleep } from '@sluice/runtime'
import type { SharedDocument } from '../config/shared-document.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { MainThread } from '../thread-messages/message-bus.ts'
import type { EndedSession, EndedSessions, SessionList, SessionRecord } from './session-list.ts'
import { mergedSessions, NO_SESSIONS, withoutExpired, withoutSession, withSession, withUse } from './session-list.ts'

/** Messages about sessions. Payloads and replies are plain data. */
export interface SessionMessages {
  /** To the main thread. */
  'sessions.begin': (session: SessionRecord) => void
  /** To the main thread: a session was used. */
  'sessions.use': (id: string, atMs: number) => void
  /** To the main thread. Resolves when the session is ended in all threads of this node. */
  'sessions.end': (session: EndedSession) => void
  /** To the main thread: active sessions of all nodes. */
  'sessions.list': () => readonly SessionRecord[]
  /** To the main thread: sessions that were ended. */
  'sessions.ended': () => EndedSessions
  /** To every thread: the sessions that were ended have changed. */
  'sessions.update': (ended: EndedSessions) => void
}

/** Options of {@link SessionRegistry}. */
export interface SessionRegistryParts {
  readonly document: SharedDocument
  readonly threads: MainThread<SessionMessages>
  readonly nowMs: NowMs
  readonly sleep: Sleep
  readonly log: Logger
  /** Whether other nodes use the same document. Otherwise it is read once. */
  readonly isShared: boolean
}

const POLL_MS = 2000

/** Only one of this many consecutive failures is logged: one per minute. */
const TOLD_EVERY = 30

const MOST_TRIES = 5

/**
 * The sessions of all nodes, in the main thread of each. A change is effective here at once. It is written to the
 * shared document as soon as that is reachable; until then this node keeps it.
 */
export class SessionRegistry {
  readonly #parts: SessionRegistryParts
  readonly #stopped = new AbortController()
  #list: SessionList = NO_SESSIONS
  /** Whether the list has changes that are not yet in the document. */
  #isAhead = false
  #syncing: Promise<void> | undefined
  #running: Promise<void> | undefined
  #failures = 0

  constructor(parts: SessionRegistryParts) {
    this.#parts = parts
    const { threads } = parts
    threads.handleInMain('sessions.begin', (session) => this.#change(withSession(this.#list, session)))
    threads.handleInMain('sessions.use', (id, atMs) => {
      this.#list = withUse(this.#list, id, atMs)
      // Written with the next poll: a use is not worth a separate write.
      this.#isAhead = true
    })
    threads.handleInMain('sessions.end', (session) => this.#change(withoutSession(this.#list, session)))
    threads.handleInMain('sessions.list', () => withoutExpired(this.#list, parts.nowMs()).sessions)
    threads.handleInMain('sessions.ended', () => this.#ended())
  }

  /** Reads the document and follows it. Resolves after the first attempt, successful or not. */
  async start(): Promise<void> {
    await this.#sync()
    this.#running = this.#follow()
  }

  /** Writes pending changes, once. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#running
    if (this.#isAhead) await this.#sync()
  }

  async #change(next: SessionList): Promise<void> {
    this.#list = next
    this.#isAhead = true
    await this.#tellThreads()
    // Not awaited: sessions begin and end here even if the database is unreachable.
    void this.#sync()
  }

  async #follow(): Promise<void> {
    const { sleep, isShared } = this.#parts
    const { signal } = this.#stopped
    for (;;) {
      try {
        await sleep(POLL_MS, signal)
      } catch {
        return
      }
      if (isShared || this.#isAhead || this.#failures > 0) await this.#sync()
    }
  }

  /** One at a time; a call during another one waits for it and starts again. */
  #sync(): Promise<void> {
    const next = (this.#syncing ?? Promise.resolve()).then(() => this.#merge())
    this.#syncing = next
    return next
  }

  /** Never rejects. */
  async #merge(): Promise<void> {
    try {
      for (let attempt = 0; attempt < MOST_TRIES; attempt++) if (await this.#mergeOnce()) break
      this.#failures = 0
    } catch (error) {
      if (this.#failures % TOLD_EVERY === 0) {
        this.#parts.log.warn('could not share sessions; retrying', { error: errorFields(error) })
      }
      this.#failures++
    }
  }

  /** False if another node has changed the document meanwhile. */
  async #mergeOnce(): Promise<boolean> {
    const { document, nowMs } = this.#parts
    const stored = await document.read()
    const before = this.#list
    const shared = stored === undefined ? NO_SESSIONS : (JSON.parse(stored.body) as SessionList)
    const list = withoutExpired(mergedSessions(shared, before), nowMs())
    this.#list = list
    if (hasOtherEnds(list, before)) await this.#tellThreads()
    if (!this.#isAhead) return true
    const isWritten = await document.write(JSON.stringify(list), stored?.revision ?? 0)
    // Changes made during the write are written with the next one.
    if (isWritten && this.#list === list) this.#isAhead = false
    return isWritten
  }

  async #tellThreads(): Promise<void> {
    await this.#parts.threads.gather('sessions.update', this.#ended())
  }

  #ended(): EndedSessions {
    const { ended, cutoffs } = this.#list
    return { ended, cutoffs }
  }
}

function hasOtherEnds(one: SessionList, other: SessionList): boolean {
  const textOf = ({ ended, cutoffs }: SessionList): string =>
    JSON.stringify([ended.map(({ id }) => id).sort(), Object.entries(cutoffs).sort()])
  return textOf(one) !== textOf(other)
}
