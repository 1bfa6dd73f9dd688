import type { LiveSample, ReadinessReason, TopAnswer, TrafficShare } from '@sluice/contract'
import type { Paint } from './terminal.ts'
import { plain } from './terminal.ts'

const HOME_AND_CLEAR = '\u001B[H\u001B[J'

/** Written before the first frame: alternate screen, hidden cursor. */
export const ENTER_SCREEN = '\u001B[?1049h\u001B[?25l'

/** Written after the last frame: restores screen and cursor. */
export const LEAVE_SCREEN = '\u001B[?25h\u001B[?1049l'

/** One sample as one line. `reasons`: why the service is degraded. */
export function sampleLine(sample: LiveSample, reasons: readonly ReadinessReason[] = []): string {
  const { at, checks, denials, spanMs, version, inFlight, firingAlerts } = sample
  return [
    new Date(at).toISOString().replace(/\.\d{3}Z$/, 'Z'),
    `checks ${rate(checks, spanMs)}/s`,
    `denied ${rate(denials, spanMs)}/s (${share(denials, checks)})`,
    `store p50 ${latency(sample.storeP50Ms)} p99 ${latency(sample.storeP99Ms)}`,
    `errors ${sample.storeErrors}`,
    `in flight ${inFlight}`,
    `version ${version}`,
    `alerts ${firingAlerts}`,
    ...reasons.map(({ code }) => `DEGRADED ${code}`),
  ].join('  ')
}

/** Size of the screen in characters. */
export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

/** What a frame shows besides a sample. */
export interface FrameParts extends ScreenSize {
  readonly url: string
  readonly top: TopAnswer | undefined
  /** Why the service is degraded. */
  readonly reasons: readonly ReadinessReason[]
  readonly paint: Paint
}

/** One sample as a full-screen frame, with control characters. */
export function sampleFrame(sample: LiveSample, { columns, rows, url, top, reasons, paint }: FrameParts): string {
  const { checks, denials, spanMs, withoutStore, storeErrors, configAgeMs } = sample
  const lines = [
    `Sluice at ${url}   ${new Date(sample.at).toISOString().slice(11, 19)} UTC   Ctrl-C to quit`,
    ...reasons.map(({ message }) => `DEGRADED: ${message}`),
    '',
    `checks ${rate(checks, spanMs)}/s   denied ${rate(denials, spanMs)}/s (${share(denials, checks)})   in flight ` +
      `${sample.inFlight}`,
    `store p50 ${latency(sample.storeP50Ms)}   p99 ${latency(sample.storeP99Ms)}   errors ${storeErrors}   decided ` +
      `without it ${withoutStore}`,
    `version ${sample.version}   ${(configAgeMs / 1000).toFixed(1)} s old   alerts ${sample.firingAlerts}`,
    '',
    ...shares('resource', sample.resources, spanMs),
    ...(sample.regions.length === 0 ? [] : ['', ...shares('region', sample.regions, spanMs)]),
    ...(top === undefined ? [] : topLines(top)),
  ]
  const shown = lines.slice(0, rows - 1).map((text) => coloured(plain(text).slice(0, columns), paint))
  return `${HOME_AND_CLEAR}${shown.join('\n')}\n`
}

/** A line of the frame with its colours. Call it after cutting the line to the screen width. */
function coloured(text: string, paint: Paint): string {
  if (text.startsWith('Sluice at ')) return paint.bold(text)
  if (text.startsWith('DEGRADED: ')) return paint.red(text)
  if (/^(?:RESOURCE|REGION|MOST DENIED: \S+) /.test(text)) return paint.dim(text)
  return text
    .replace(/\bdenied [^(]*[1-9][^(]*\(.*?\)/, paint.yellow)
    .replace(/\b(?:errors|decided without it|alerts) [1-9]\d*/g, paint.red)
}

function shares(title: string, list: readonly TrafficShare[], spanMs: number): readonly string[] {
  const rows = list
    .toSorted((one, other) => other.checks - one.checks)
    .map(({ name, checks, denials }) => line(name, `${rate(checks, spanMs)}/s`, share(denials, checks)))
  return [line(title.toUpperCase(), 'CHECKS', 'DENIED'), ...rows]
}

function topLines({ spanMs, dimensions }: TopAnswer): readonly string[] {
  return dimensions.flatMap(({ dimension, entries }) => {
    if (entries.length === 0) return []
    const title = line(`MOST DENIED: ${dimension}`, `IN ${Math.round(spanMs / 60_000)} MIN`, '')
    return ['', title, ...entries.map(({ entity, denials }) => line(entity, String(denials), ''))]
  })
}

function line(name: string, first: string, second: string): string {
  const cut = name.length > 40 ? `${name.slice(0, 39)}~` : name
  return `${cut.padEnd(40)} ${first.padStart(12)} ${second.padStart(9)}`.trimEnd()
}

function rate(count: number, spanMs: number): string {
  const perSecond = spanMs > 0 ? (count * 1000) / spanMs : 0
  return perSecond >= 100 || Number.isInteger(perSecond) ? String(Math.round(perSecond)) : perSecond.toFixed(1)
}

function share(part: number, whole: number): string {
  return whole === 0 ? '0 %' : `${((100 * part) / whole).toFixed(1)} %`
}

function latency(ms: number | null): string {
  return ms === null ? '-' : `${ms >= 10 ? Math.round(ms) : ms.toFixed(1)} ms`
}
