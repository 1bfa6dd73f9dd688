import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { every } from '../clock-and-timers.ts'
import type { ApiError } from './api-error.ts'
import { asApiError, isAborted } from './api-error.ts'

/** What is known of something that is loaded. `value` stays while it is loaded again, and after a failure. */
export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

/** A loader with its state. */
export interface Query<T> {
  readonly state: ReadonlySignal<Loaded<T>>
  /** Loads it again; the last load wins. */
  reload(): Promise<void>
}

/** How often a query is loaded again. */
export interface QueryOptions {
  /** Default: never by itself. */
  readonly periodMs?: number
}

/**
 * Loads something when the component appears and whenever `key` changes. `load` receives a signal that is aborted when
 * the answer is no longer wanted.
 */
export function useQuery<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  options: QueryOptions = {},
): Query<T> {
  // `key` names everything that `load` depends on.
  const query = useMemo(() => createQuery(load), [key])
  useEffect(() => {
    void query.reload()
    const stop = options.periodMs === undefined ? undefined : every(options.periodMs, () => void query.reload())
    return () => {
      stop?.()
      query.stop()
    }
  }, [query, options.periodMs])
  return query
}

interface StoppableQuery<T> extends Query<T> {
  stop(): void
}

function createQuery<T>(load: (signal: AbortSignal) => Promise<T>): StoppableQuery<T> {
  const state = signal<Loaded<T>>({ value: undefined, error: undefined, isLoading: true })
  let running = new AbortController()
  async function reload(): Promise<void> {
    running.abort()
    const own = new AbortController()
    running = own
    state.value = { ...state.peek(), isLoading: true }
    try {
      const value = await load(own.signal)
      if (!own.signal.aborted) state.value = { value, error: undefined, isLoading: false }
    } catch (error) {
      if (own.signal.aborted || isAborted(error)) return
      state.value = { value: state.peek().value, error: asApiError(error), isLoading: false }
    }
  }
  return { state, reload, stop: () => running.abort() }
}
