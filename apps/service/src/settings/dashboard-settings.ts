import type { SettingDefinition } from './setting-definition.ts'

/** What the settings of the dashboard are once they were read. */
export interface DashboardSettingValues {
  readonly dashboard: boolean
  readonly basePath: string
}

/** The settings of the dashboard. */
export const DASHBOARD_SETTINGS: Readonly<Record<keyof DashboardSettingValues, SettingDefinition>> = {
  dashboard: {
    flag: 'dashboard',
    variable: 'SLUICE_DASHBOARD',
    argument: '',
    help: 'Serve the dashboard at /. --no-dashboard turns it off. Default: on.',
    schema: { type: 'boolean', title: 'true or false' },
  },
  basePath: {
    flag: 'base-path',
    variable: 'SLUICE_BASE_PATH',
    argument: '<path>',
    help:
      'Path below which a proxy serves this service, such as /limits; for the cookie of the dashboard. Trusted ' +
      'proxies may send X-Forwarded-Prefix instead. Default: /.',
    schema: {
      type: 'string',
      pattern: '^(?:/|(?:/(?!\\.{1,2}(?:/|$))[\\w.~-]+)+)$',
      title: 'a path such as /limits, without a slash at the end',
    },
  },
}
