import type { ReadonlySignal } from '@preact/signals'
import { computed } from '@preact/signals'
import type { JSX } from 'preact'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../controls/badge.tsx'
import { Button } from '../controls/button.tsx'
import { Segments } from '../controls/field.tsx'
import { queryParameter, setQuery } from '../navigation/router.ts'
import { durationText, instantText } from '../theme/format.ts'

const SPANS = {
  '15m': { label: '15 min', ms: 900_000 },
  '1h': { label: '1 h', ms: 3_600_000 },
  '6h': { label: '6 h', ms: 21_600_000 },
  '24h': { label: '24 h', ms: 86_400_000 },
  '7d': { label: '7 d', ms: 604_800_000 },
  '30d': { label: '30 d', ms: 2_592_000_000 },
} as const

type SpanName = keyof typeof SPANS

/**
 * The range of the page. `live` ends now and goes on; `fixed` is between two instants of the URL, which a link to an
 * incident keeps.
 */
export type TimeRange =
  | { readonly kind: 'live'; readonly name: SpanName; readonly spanMs: number }
  | { readonly kind: 'fixed'; readonly fromMs: number; readonly toMs: number }

/** The range that the URL names: `range=1h`, or `from` and `to` in milliseconds. Default: 15 minutes, live. */
export const timeRange: ReadonlySignal<TimeRange> = computed(() => {
  const fromMs = Number(queryParameter('from') ?? Number.NaN)
  const toMs = Number(queryParameter('to') ?? Number.NaN)
  if (fromMs < toMs) return { kind: 'fixed', fromMs, toMs }
  const wanted = queryParameter('range') ?? ''
  const name = Object.hasOwn(SPANS, wanted) ? (wanted as SpanName) : '15m'
  return { kind: 'live', name, spanMs: SPANS[name].ms }
})

/** The two ends of a range; a live one ends now. */
export function endsOf(range: TimeRange): { fromMs: number; toMs: number } {
  if (range.kind === 'fixed') return range
  const toMs = nowMs()
  return { fromMs: toMs - range.spanMs, toMs }
}

/** A text that differs between ranges, for the key of a query. */
export function rangeKey(range: TimeRange): string {
  return range.kind === 'live' ? range.name : `${range.fromMs}-${range.toMs}`
}

const CHOICES = Object.entries(SPANS).map(([value, { label }]) => ({ value: value as SpanName, label }))

/** Chooses the time range; it stands in the URL, so that a link shows the same. */
export function TimeRangePicker(): JSX.Element {
  const range = timeRange.value
  if (range.kind === 'fixed') {
    return (
      <>
        <Badge tone="accent">
          {instantText(range.fromMs)} + {durationText(range.toMs - range.fromMs)}
        </Badge>
        <Button icon="play" onClick={() => setQuery({ from: undefined, to: undefined })}>
          Back to live
        </Button>
      </>
    )
  }
  return (
    <Segments
      label="Time range"
      value={range.name}
      choices={CHOICES}
      onChange={(name) => setQuery({ range: name === '15m' ? undefined : name, from: undefined, to: undefined })}
    />
  )
}
