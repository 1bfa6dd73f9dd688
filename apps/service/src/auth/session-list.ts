/** A session as all nodes list it. Plain data; times are in milliseconds since 1970. */
export interface SessionRecord {
  readonly id: string
  readonly keyId: string
  readonly createdAt: number
  readonly expiresAt: number
  /** To the minute. */
  readonly lastSeenAt: number
  /** Network of the browser. */
  readonly address: string
  readonly browser: string
}

/** A session that was ended before its time. */
export interface EndedSession extends Pick<SessionRecord, 'id' | 'keyId' | 'createdAt' | 'expiresAt'> {}

/** The sessions that are not valid although their ticket is. */
export interface EndedSessions {
  readonly ended: readonly EndedSession[]
  /** By key id: sessions of this key that began then or before are ended. */
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

/** Sessions that one key has at once. */
const MOST_PER_KEY = 50

/** Ended sessions of one key that are listed one by one. */
const MOST_ENDED_PER_KEY = 100

/** The list with one more session. The oldest of its key ends if there are too many. */
export function withSession(list: SessionList, session: SessionRecord): SessionList {
  const next = { ...list, sessions: [...list.sessions.filter(({ id }) => id !== session.id), session] }
  const own = next.sessions.filter(({ keyId }) => keyId === session.keyId)
  const surplus = own.toSorted((one, other) => one.createdAt - other.createdAt).slice(0, -MOST_PER_KEY)
  return surplus.reduce<SessionList>((shorter, one) => withoutSession(shorter, one), next)
}

/** The list with one session ended. */
export function withoutSession(list: SessionList, ended: EndedSession): SessionList {
  const { id, keyId, createdAt, expiresAt } = ended
  return bounded({
    ...list,
    sessions: list.sessions.filter((session) => session.id !== id),
    ended: [...list.ended.filter((one) => one.id !== id), { id, keyId, createdAt, expiresAt }],
  })
}

/** The list with the last use of a session. */
export function withUse(list: SessionList, id: string, atMs: number): SessionList {
  const sessions = list.sessions.map((session) =>
    session.id === id && session.lastSeenAt < atMs ? { ...session, lastSeenAt: atMs } : session,
  )
  return { ...list, sessions }
}

/** Both lists as one. What one of them ended is ended. The order does not matter. */
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

/** The list without what has expired by itself. A cut-off is needed for as long as a session may last. */
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

/** Uses are noted to the minute, so an idle session is listed for a minute longer. */
const MINUTE_MS = 60_000

/** Whether a session was ended before its time. */
export function isEnded(
  { ended, cutoffs }: EndedSessions,
  { id, keyId, createdAt }: Pick<EndedSession, 'id' | 'keyId' | 'createdAt'>,
): boolean {
  return createdAt <= (cutoffs[keyId] ?? 0) || ended.some((one) => one.id === id)
}

/** Turns the oldest ended sessions of a key into a cut-off where there are too many. */
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
