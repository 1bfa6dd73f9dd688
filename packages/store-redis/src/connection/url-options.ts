import type { ConnectionOptions } from 'node:tls'

/** How a server named by a URL is reached. */
export interface UrlOptions {
  /** The URLs are nodes of one cluster; one that runs is enough to find the others. */
  readonly cluster?: boolean
  /**
   * The URLs are sentinels, and this the name of the primary they watch. User, password and database in the URLs are the
   * primary's; those of the sentinels, if they have any, stand here.
   */
  readonly sentinel?: { readonly name: string; readonly username?: string; readonly password?: string }
  /** For `rediss://`: what to trust, and how to prove who we are. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'passphrase' | 'rejectUnauthorized' | 'servername'>
}
