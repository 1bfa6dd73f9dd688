import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

const NOTICEABLE_MS = 250
const HARMFUL_MS = 1000

/** When another clock was read, in milliseconds since 1970 each. */
interface ClockReading {
  /** By our clock, before it was asked. */
  readonly beforeMs: number
  /** What it said. */
  readonly thereMs: number
  /** By our clock, when the answer was here. */
  readonly afterMs: number
}

/**
 * How far another clock is from ours. It was read at some instant between two of ours: only what cannot be explained by the time
 * of the way counts.
 */
export function clockFinding(check: string, reading: ClockReading): Finding {
  // Our clock may show whole milliseconds only, so others are read no more exactly.
  const [beforeMs, thereMs, afterMs] = [reading.beforeMs, reading.thereMs, reading.afterMs].map(Math.floor) as [
    number,
    number,
    number,
  ]
  const aheadMs = Math.max(0, thereMs - afterMs)
  const behindMs = Math.max(0, beforeMs - thereMs)
  const skewMs = Math.max(aheadMs, behindMs)
  const found = `${skewMs} ms ${behindMs > aheadMs ? 'behind' : 'ahead of'} this machine, read within ${afterMs - beforeMs} ms`
  if (skewMs <= NOTICEABLE_MS) return ok(check, found)
  const advice = 'Let the clocks of all machines follow the same time servers (chrony, systemd-timesyncd).'
  return skewMs <= HARMFUL_MS ? warning(check, found, advice) : failed(check, found, advice)
}

/** Waits `ms` milliseconds, or until the signal aborts. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** What `work` gives; rejects when that takes longer than `ms`. */
export async function within<T>(ms: number, wait: Wait, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const expire = async (): Promise<never> => {
    await wait(ms, done.signal)
    throw new Error(`no answer within ${ms} ms`)
  }
  const expiry = expire()
  // Of the two that race, the loser is not looked at any more.
  expiry.catch(() => undefined)
  work.catch(() => undefined)
  try {
    return await Promise.race([work, expiry])
  } finally {
    done.abort()
  }
}

/** An address without user, password and parameters. */
export function shownUrl(text: string): string {
  if (!URL.canParse(text)) return 'an address that cannot be read'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

/** Why something failed, in one line. */
export function reasonOf(error: unknown): string {
  // Several addresses of one host, all of which failed, make an error without a message of its own.
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message.split('\n')[0]! : String(error)
}
