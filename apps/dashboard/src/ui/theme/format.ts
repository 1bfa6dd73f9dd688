/** Text for numbers and times, the same everywhere on the page. */

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const PERCENT = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })
const DECIMAL = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const INSTANT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** Stands where there is no figure. */
export const NO_VALUE = '–'

/** `12,345`. */
export function countText(value: number): string {
  return COUNT.format(value)
}

/** `1 rule`, `12 rules`. */
export function pluralText(count: number, noun: string): string {
  return `${countText(count)} ${noun}${Math.round(count) === 1 ? '' : 's'}`
}

/** `12.3K`, for axes and narrow places. */
export function compactText(value: number): string {
  const size = Math.abs(value)
  if (size >= 1000) return COMPACT.format(value)
  return size < 1 ? DECIMAL.format(value) : String(Math.round(value * (size < 10 ? 10 : 1)) / (size < 10 ? 10 : 1))
}

/** `4.2%` for 0.042. */
export function percentText(share: number | null | undefined): string {
  return share === null || share === undefined || Number.isNaN(share) ? NO_VALUE : PERCENT.format(share)
}

/** `7.2 µs`, `0.31 ms`, `1.2 s`, `3 min`, `2 h`, `4 d`. */
export function durationText(durationMs: number | null | undefined): string {
  if (durationMs === null || durationMs === undefined) return NO_VALUE
  if (durationMs > 0 && durationMs < 0.1) return `${DECIMAL.format(durationMs * 1000)} µs`
  if (durationMs < 1000) return `${DECIMAL.format(durationMs)} ms`
  if (durationMs < 60_000) return `${DECIMAL.format(durationMs / 1000)} s`
  if (durationMs < 3_600_000) return `${DECIMAL.format(durationMs / 60_000)} min`
  if (durationMs < 86_400_000) return `${DECIMAL.format(durationMs / 3_600_000)} h`
  return `${DECIMAL.format(durationMs / 86_400_000)} d`
}

/** `18 Nov 2026, 10:42:07`, in the time zone of the browser. */
export function instantText(atMs: number): string {
  return INSTANT.format(atMs)
}

/** `10:42:07`. */
export function timeText(atMs: number): string {
  return TIME.format(atMs)
}

/** `12 s ago`, `in 3 min`. */
export function agoText(atMs: number, nowMs: number): string {
  const differenceMs = nowMs - atMs
  const awayMs = Math.abs(differenceMs)
  if (awayMs < 1000) return 'now'
  const unitMs = [86_400_000, 3_600_000, 60_000].find((each) => awayMs >= each) ?? 1000
  const text = durationText(Math.round(awayMs / unitMs) * unitMs)
  return differenceMs > 0 ? `${text} ago` : `in ${text}`
}
