/** A session as shared by all nodes. Plain data; times are in milliseconds since 1970. */
export interface SessionRecord {
  readonly id: string
  readonly keyId: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Rounded to minutes. */
  readonly lastSeenAt: number
  /** Network of the browser. */
  readonly address: string
  readonly browser: string
}

/** A session that ended early. */
export interface EndedSession extends Pick<SessionRecord, 'id' | 'keyId' | 'createdAt' | 'expiresAt'> {}

/** Sessions that are invalid although their ticket is valid. */
export interface EndedSessions {
  readonly ended: readonly EndedSession[]
  /** By key id: sessions of this key that began at this time or earlier have ended. */
  readonly cutoffs: Readonly<Record<string, number>>
}

/** All sessions: the content of the shared document. */
export interface SessionList extends EndedSessions {
  readonly sessions: readonly SessionRecord[]
}

export const NO_SESSIONS: SessionList = { sessions: [], ended: [], cutoffs: {} }

/** A session ends this long after its last use. */
export const IDLE_MS = 1_800_000

/** A session ends this long after it began, whether or not it is used. */
export const LONGEST_MS = 43_200_000

/** Maximum number of sessions per key. */
const MOST_PER_KEY = 50

/** Maximum number of ended sessions per key that are listed individually. */
const MOST_ENDED_PER_KEY = 100

/** Adds a session. The oldest of its key ends if there are too many. */
export function withSession(list: SessionList, session: SessionRecord): SessionList {
  const next = { ...list, sessions: [...list.sessions.filter(({ id }) => id !== session.id), session] }
  const own = next.sessions.filter(({ keyId }) => keyId === session.keyId)
  const surplus = own.toSorted((one, other) => one.createdAt - other.createdAt).slice(0, -MOST_PER_KEY)
  return surplus.reduce<SessionList>((shorter, one) => withoutSession(shorter, one), next)
}

/** Ends a session. */
export function withoutSession(list: SessionList, ended: EndedSession): SessionList {
  const { id, keyId, createdAt, expiresAt } = ended
  return bounded({
    ...list,
    sessions: list.sessions.filter((session) => session.id !== id),
    ended: [...list.ended.filter((one) => one.id !== id), { id, keyId, createdAt, expiresAt }],
  })
}

/** Updates the last use of a session. */
export function withUse(list: SessionList, id: string, atMs: number): SessionList {
  const sessions = list.sessions.map((session) =>
    session.id === id && session.lastSeenAt < atMs ? { ...session, lastSeenAt: atMs } : session,
  )
  return { ...list, sessions }
}

/** Merges two lists. A session that ended in either has ended. The order does not matter. */
export function mergedSessions(one: SessionList, other: SessionList): SessionList {
  const sessions = new Map(one.sessions.map((session) => [session.id, session]))
  for (const session of other.sessions) {
    const known = sessions.get(session.id)
    if (known === undefined || known.lastSeenAt < session.lastSeenAt) sessions.set(session.id, session)
  }
  const ended = new Map([...one.ended, ...other.ended].map((session) => [session.id, session]))
  const cutoffs = { ...one.cutoffs }
  for (const [keyId, at] of Object.entries(other.cutoffs)) cutoffs[keyId] = Math.max(at, cutoffs[keyId] ?? 0)
  const both = bounded({ sessions: [], ended: [...ended.values()], cutoffs })
  return { ...both, sessions: [...sessions.values()].filter((session) => !isEnded(both, session)) }
}

/** Removes expired entries. A cut-off is needed for as long as a session may last. */
export function withoutExpired(list: SessionList, nowMs: number): SessionList {
  const cutoffs = Object.entries(list.cutoffs).filter(([, at]) => at + LONGEST_MS > nowMs)
  return {
    sessions: list.sessions.filter(
      ({ expiresAt, lastSeenAt }) => expiresAt > nowMs && lastSeenAt + IDLE_MS + MINUTE_MS > nowMs,
    ),
    ended: list.ended.filter(({ expiresAt }) => expiresAt > nowMs),
    cutoffs: Object.fromEntries(cutoffs),
  }
}

/** Uses are rounded to minutes, so an idle session is listed for a minute longer. */
const MINUTE_MS = 60_000

/** Whether a session ended early. */
export function isEnded(
  { ended, cutoffs }: EndedSessions,
  { id, keyId, createdAt }: Pick<EndedSession, 'id' | 'keyId' | 'createdAt'>,
): boolean {
  return createdAt <= (cutoffs[keyId] ?? 0) || ended.some((one) => one.id === id)
}

/** Replaces the oldest ended sessions of a key by a cut-off if there are too many. */
function bounded(list: SessionList): SessionList {
  const byKey = Map.groupBy(list.ended, ({ keyId }) => keyId)
  const crowded = [...byKey].filter(([, ended]) => ended.length > MOST_ENDED_PER_KEY)
  if (crowded.length === 0) return list
  const cutoffs = { ...list.cutoffs }
  for (const [keyId, ended] of crowded) {
    const oldest = ended.toSorted((one, other) => one.createdAt - other.createdAt).slice(0, -MOST_ENDED_PER_KEY)
    cutoffs[keyId] = Math.max(cutoffs[keyId] ?? 0, ...oldest.map(({ createdAt }) => createdAt))
  }
  const isCut = ({ keyId, createdAt }: Pick<EndedSession, 'keyId' | 'createdAt'>): boolean =>
    createdAt <= (cutoffs[keyId] ?? 0)
  return {
    cutoffs,
    sessions: list.sessions.filter((session) => !isCut(session)),
    ended: list.ended.filter((session) => !isCut(session)),
  }
}
