import type { ConfigStore, ConfigStoreOptions } from '@sluice/config-store'

/** A place for configuration that tests make databases in. */
export interface TestDatabases {
  /** Creates a database. The returned function opens it, any number of times; all are closed with the test. */
  create(): Promise<(options?: ConfigStoreOptions) => Promise<ConfigStore>>
}
