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
  {
    path: '/decisions',
    load: async () => (await import('./decisions/decisions-page.tsx')).DecisionsPage,
    navigation: { label: 'Decisions', icon: 'decisions', group: 'Observe' },
  },
  {
    path: '/usage',
    load: async () => (await import('./usage/usage-page.tsx')).UsagePage,
    navigation: { label: 'Usage', icon: 'usage', group: 'Observe' },
  },
  {
    path: '/explain',
    load: async () => (await import('./explain/explain-page.tsx')).ExplainPage,
    navigation: { label: 'Explain', icon: 'explain', group: 'Observe' },
  },
  {
    path: '/rules',
    load: async () => (await import('./rules/rules-page.tsx')).RulesPage,
    navigation: { label: 'Rules', icon: 'rules', group: 'Limits' },
  },
  {
    path: '/rules/edit',
    load: async () => (await import('./rules/editor/editor-page.tsx')).EditorPage,
  },
  {
    path: '/playground',
    load: async () => (await import('./playground/playground-page.tsx')).PlaygroundPage,
    isPublic: true,
    navigation: { label: 'Playground', icon: 'playground', group: 'Limits' },
  },
  {
    path: '/gateway',
    load: async () => (await import('./gateway/gateway-page.tsx')).GatewayPage,
    navigation: { label: 'Gateway', icon: 'gateway', group: 'Operate' },
  },
  {
    path: '/nodes',
    load: async () => (await import('./nodes/nodes-page.tsx')).NodesPage,
    navigation: { label: 'Nodes', icon: 'nodes', group: 'Operate' },
  },
  {
    path: '/alerts',
    load: async () => (await import('./alerts/alerts-page.tsx')).AlertsPage,
    navigation: { label: 'Alerts', icon: 'alerts', group: 'Operate' },
  },
  {
    path: '/api-keys',
    load: async () => (await import('./api-keys/api-keys-page.tsx')).ApiKeysPage,
    navigation: { label: 'API keys', icon: 'keys', group: 'Access' },
  },
  {
    path: '/sessions',
    load: async () => (await import('./sessions/sessions-page.tsx')).SessionsPage,
    navigation: { label: 'Sessions', icon: 'display', group: 'Access' },
  },
  {
    path: '/audit',
    load: async () => (await import('./audit/audit-page.tsx')).AuditPage,
    navigation: { label: 'Audit', icon: 'audit', group: 'Access' },
  },
]
