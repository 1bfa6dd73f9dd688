import type { ConfigStore } from '@sluice/config-store'

/** What can be read of a configuration, whether it is in a database or in a file. */
export interface ConfigReads {
  readonly versions: Pick<ConfigStore['versions'], 'get' | 'list' | 'current' | 'diff'>
  readonly overrides: Pick<ConfigStore['overrides'], 'list'>
  readonly members: Pick<ConfigStore['members'], 'list'>
}

/** What is in a database only: it comes about while the service runs, and no file says it. */
export interface DatabaseReads {
  readonly blocks: Pick<ConfigStore['blocks'], 'list'>
  readonly incident: Pick<ConfigStore['incident'], 'get'>
  readonly apiKeys: Pick<ConfigStore['apiKeys'], 'list'>
  readonly audit: Pick<ConfigStore['audit'], 'list'>
}
