import { useSignal } from '@preact/signals'
import type { Page } from '@sluice/contract'
import type { Query } from '../../../api/query.ts'
import { useQuery } from '../../../api/query.ts'

/** A list that is read page by page. */
export interface PagedList<T> {
  readonly query: Query<Page<T>>
  /** Reads another page. */
  more(): void
}

const PAGE_SIZE = 100

/** Reads a list. `key` names everything that `load` depends on. Each page more makes the whole list longer. */
export function usePages<T>(
  key: string,
  load: (page: { readonly limit: number }, signal: AbortSignal) => Promise<Page<T>>,
): PagedList<T> {
  const pages = useSignal(1)
  const limit = Math.min(1000, pages.value * PAGE_SIZE)
  const query = useQuery(`${key} ${limit}`, (signal) => load({ limit }, signal))
  return {
    query,
    more: () => {
      pages.value += 1
    },
  }
}
