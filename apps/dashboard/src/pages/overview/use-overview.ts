import type { ReadonlySignal } from '@preact/signals'
import { effect, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError, isAborted } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import type { StreamState } from '../../api/event-stream.ts'
import { followStream } from '../../api/event-stream.ts'
import { every, nowMs } from '../../clock-and-timers.ts'
import type { TimeRange } from '../../ui/shell/time-range.tsx'
import { endsOf, rangeKey } from '../../ui/shell/time-range.tsx'
import { MOST_RESOURCES, OverviewFigures } from './overview-figures.ts'

/** One node tells ten times a second; several are put together once a second. */
const ONE_NODE_PERIOD_MS = 100
const ALL_NODES_PERIOD_MS = 1000
/** The resources with lines of their own are chosen again: one that is denied now has a line soon. */
const RELOAD_MS = 15_000
const NARROWEST_MS = 60_000

/** The overview of a range and a node. */
export interface Overview {
  readonly figures: OverviewFigures
  readonly error: ReadonlySignal<ApiError | undefined>
  readonly streamState: ReadonlySignal<StreamState | 'fixed'>
  /** The ends of the time axis. */
  range(): readonly [fromMs: number, toMs: number]
  reload(): void
}

/** Loads a range and follows it while it is live. `node`: undefined for all nodes together. */
export function useOverview(timeRange: TimeRange, node: string | undefined): Overview {
  const key = `${rangeKey(timeRange)} ${node}`
  // A new range begins with empty charts, never with the figures of another.
  const figures = useMemo(() => new OverviewFigures(), [key])
  const error = useSignal<ApiError | undefined>(undefined)
  const streamState = useSignal<StreamState | 'fixed'>('connecting')
  const attempt = useSignal(0)
  useEffect(() => {
    const ending = new AbortController()
    const isLive = timeRange.kind === 'live'
    const load = async (isFirst: boolean): Promise<void> => {
      const { fromMs, toMs } = endsOf(timeRange)
      const parameters = { from: fromMs, to: toMs, resources: MOST_RESOURCES, ...(node === undefined ? {} : { node }) }
      try {
        const answer = await call('overview', { parameters, signal: ending.signal })
        if (isFirst) figures.load(answer, isLive)
        else figures.reload(answer, isLive)
        error.value = undefined
      } catch (failure) {
        if (!isAborted(failure)) error.value = asApiError(failure)
      }
    }
    void load(true)
    if (!isLive) {
      streamState.value = 'fixed'
      return () => ending.abort()
    }
    const stream = followStream({
      id: 'overviewLive',
      parameters: {
        everyMs: node === undefined ? ALL_NODES_PERIOD_MS : ONE_NODE_PERIOD_MS,
        ...(node === undefined ? {} : { node }),
      },
      onEvent: (update) => figures.apply(update),
    })
    const stopState = effect(() => {
      const isBack = stream.state.value === 'live' && streamState.peek() === 'connecting'
      const wasLive = figures.revision.peek() > 0
      streamState.value = stream.state.value
      // What happened while the connection was lost is in the range that the service keeps.
      if (isBack && wasLive) void load(true)
    })
    const stopReload = every(RELOAD_MS, () => void load(false))
    return () => {
      ending.abort()
      stream.close()
      stopState()
      stopReload()
    }
  }, [key, attempt.value])
  const reload = (): void => {
    attempt.value += 1
  }
  return { figures, error, streamState, range: () => axisOf(timeRange, figures), reload }
}

/** The axis of a live range ends at the newest point, and begins where a young service does. */
function axisOf(timeRange: TimeRange, { traffic, stepMs }: OverviewFigures): readonly [number, number] {
  if (timeRange.kind === 'fixed') return [timeRange.fromMs, timeRange.toMs]
  const last = traffic.lastAtMs
  const toMs = last === undefined ? nowMs() : last + (stepMs > ONE_NODE_PERIOD_MS * 10 ? 0 : stepMs)
  const fromMs = Math.max(toMs - timeRange.spanMs, traffic.firstAtMs ?? 0)
  return [Math.min(fromMs, toMs - NARROWEST_MS), toMs]
}
