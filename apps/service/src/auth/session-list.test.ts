import { describe, expect, it } from 'vitest'
import type { SessionList, SessionRecord } from './session-list.ts'
import {
  IDLE_MS,
  isEnded,
  LONGEST_MS,
  mergedSessions,
  NO_SESSIONS,
  withoutExpired,
  withoutSession,
  withSession,
  withUse,
} from './session-list.ts'

function session(number: number, keyId = 'slk_a'): SessionRecord {
  const at = { createdAt: number, expiresAt: number + LONGEST_MS, lastSeenAt: number }
  return { id: `s${number}`, keyId, ...at, address: '192.0.2.1', browser: 'test' }
}

function listOf(...sessions: readonly SessionRecord[]): SessionList {
  return sessions.reduce<SessionList>(withSession, NO_SESSIONS)
}

const ids = ({ sessions }: SessionList): readonly string[] => sessions.map(({ id }) => id)

describe('a list of sessions', () => {
  it('has at most 50 of one key: the oldest ends', () => {
    const list = listOf(...Array.from({ length: 51 }, (_, number) => session(number)), session(70, 'slk_b'))
    expect(list.sessions.filter(({ keyId }) => keyId === 'slk_a')).toHaveLength(50)
    expect(isEnded(list, session(0))).toBe(true)
    expect(isEnded(list, session(1))).toBe(false)
    expect(isEnded(list, session(70, 'slk_b'))).toBe(false)
  })

  it('keeps 100 ended sessions of a key, and ends all older ones by a cut-off', () => {
    let list = listOf(session(0), session(1), session(500))
    for (let number = 2; number < 103; number++) list = withoutSession(list, session(number))
    expect(list.ended).toHaveLength(100)
    expect(list.cutoffs).toEqual({ slk_a: 2 })
    // Sessions 0 and 1 went on: they are older than one that was forgotten, so they end with it.
    for (let number = 0; number < 103; number++)
      expect([number, isEnded(list, session(number))]).toEqual([number, true])
    expect(ids(list)).toEqual(['s500'])
    expect(isEnded(list, session(1, 'slk_b'))).toBe(false)
  })

  it('is the same whichever of two is merged into the other', () => {
    const base = listOf(session(1), session(2), session(3))
    const one = withUse(withoutSession(base, session(1)), 's2', 50)
    const other = withSession(withoutSession(base, session(3)), session(4))
    const sorted = (list: SessionList) => ({
      ...list,
      sessions: list.sessions.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      ended: list.ended.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    })
    const merged = sorted(mergedSessions(one, other))
    expect(merged).toEqual(sorted(mergedSessions(other, one)))
    expect(ids(merged)).toEqual(['s2', 's4'])
    expect(merged.sessions[0]?.lastSeenAt).toBe(50)
    expect(mergedSessions(merged, merged)).toEqual(merged)
  })

  it('forgets what has expired: sessions, ends and cut-offs', () => {
    let list = listOf(session(0), session(1))
    for (let number = 2; number < 103; number++) list = withoutSession(list, session(number))
    const idle = withoutExpired(listOf(session(0)), IDLE_MS + 60_000)
    expect(ids(withoutExpired(listOf(session(0)), IDLE_MS + 59_999))).toEqual(['s0'])
    expect(ids(idle)).toEqual([])
    expect(withoutExpired(list, LONGEST_MS + 1).ended.length).toBe(100)
    expect(withoutExpired(list, LONGEST_MS + 102)).toEqual(NO_SESSIONS)
  })
})
