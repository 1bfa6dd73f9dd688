import type { ConfigStore, ConfigStoreOptions } from '@sluice/config-store'

/** A place for configuration that tests make databases in. */
export interface TestDatabases {
  /** A database of its own: what it gives opens it, as often as is asked, and closes it with the test. */
  create(): Promise<(options?: ConfigStoreOptions) => Promise<ConfigStore>>
}
