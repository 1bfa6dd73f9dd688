import { useSignal } from '@preact/signals'
import type { Page } from '@sluice/contract'
import type { JSX } from 'preact'
import type { Query, QueryOptions } from '../../api/query.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../ui/controls/button.tsx'
import { showFailure, showToast } from '../../ui/overlay/toast.tsx'
import classes from './paged-list.module.css'

/** A list that is read page by page. */
export interface PagedList<T> {
  readonly query: Query<Page<T>>
  /** Reads another page. */
  more(): void
}

const PAGE_SIZE = 100

/** Rows that a page shows at most; filters find the rest. */
const MOST_ROWS = 1000

/** Reads a list. `key` names everything that `load` depends on. Each page more makes the whole list longer. */
export function usePages<T>(
  key: string,
  load: (page: { readonly limit: number }, signal: AbortSignal) => Promise<Page<T>>,
  options: QueryOptions = {},
): PagedList<T> {
  const pages = useSignal(1)
  const limit = Math.min(MOST_ROWS, pages.value * PAGE_SIZE)
  const query = useQuery(`${key} ${limit}`, (signal) => load({ limit }, signal), options)
  return {
    query,
    more: () => {
      pages.value += 1
    },
  }
}

/** Stands below a list that goes on. */
export function MoreButton({ page, onMore }: { page: Page<unknown>; onMore: () => void }): JSX.Element | null {
  if (page.next === undefined) return null
  return (
    <div class={classes.more}>
      {page.items.length < MOST_ROWS ? (
        <Button onClick={onMore}>Show more</Button>
      ) : (
        <p>Only the first {MOST_ROWS} are shown. Filter to find others.</p>
      )}
    </div>
  )
}

/** Does something, and says how it went. Resolves with whether it was done. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work()
    showToast(done)
    return true
  } catch (error) {
    showFailure(error)
    return false
  }
}
