import type { FunctionComponent } from 'preact'
import type { IconName } from '../ui/theme/icon.tsx'

/** What a page receives: the parts of its path. */
export interface PageParameters {
  readonly parameters: Readonly<Record<string, string>>
}

/** A page and where it is. */
export interface Route {
  /** Such as `/rules/:name`. */
  readonly path: string
  /** Loads the page when it is first opened. */
  readonly load: () => Promise<FunctionComponent<PageParameters>>
  /** Whether it works without signing in. */
  readonly isPublic?: boolean
  /** Its place in the navigation; absent for pages that are reached from others. */
  readonly navigation?: { readonly label: string; readonly icon: IconName; readonly group: string }
}

/** Every page. The order is that of the navigation. */
export const ROUTES: readonly Route[] = [
  {
    path: '/',
    load: async () => (await import('./overview/overview-page.tsx')).OverviewPage,
    navigation: { label: 'Overview', icon: 'overview', group: 'Observe' },
  },
]
