import type { ChangeBatch, ChangeFeed, ConfigStore } from '@sluice/config-store'

/**
 * A configuration store that may be unreachable. It is opened on first use, and each use tries again until that
 * succeeds. `open` never runs twice at the same time, nor after it succeeded.
 */
export class ReconnectingConfigStore implements ConfigStore {
  readonly versions: ConfigStore['versions'] = this.#late('versions')
  readonly overrides: ConfigStore['overrides'] = this.#late('overrides')
  readonly members: ConfigStore['members'] = this.#late('members')
  readonly blocks: ConfigStore['blocks'] = this.#late('blocks')
  readonly incident: ConfigStore['incident'] = this.#late('incident')
  readonly apiKeys: ConfigStore['apiKeys'] = this.#late('apiKeys')
  readonly audit: ConfigStore['audit'] = this.#late('audit')
  readonly secrets: ConfigStore['secrets'] = this.#late('secrets')
  readonly numbers: ConfigStore['numbers'] = this.#late('numbers')
  readonly rollups: ConfigStore['rollups'] = this.#late('rollups')
  readonly documents: ConfigStore['documents'] = this.#late('documents')
  readonly feed: ChangeFeed
  readonly #open: () => Promise<ConfigStore>
  #opening: Promise<ConfigStore> | undefined
  #isClosed = false

  constructor(open: () => Promise<ConfigStore>) {
    this.#open = open
    const opened = async (): Promise<ChangeFeed> => (await this.opened()).feed
    this.feed = {
      head: async () => await (await opened()).head(),
      load: () => loadLate(opened),
      since: async (position) => await (await opened()).since(position),
      watch: async (changed, lost) => await (await opened()).watch(changed, lost),
    }
  }

  /** Resolves once the store is open; rejects if this attempt fails. */
  opened(): Promise<ConfigStore> {
    this.#opening ??= this.#tryToOpen()
    return this.#opening
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const store = await this.#opening?.catch(() => undefined)
    await store?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #tryToOpen(): Promise<ConfigStore> {
    try {
      if (this.#isClosed) throw new Error('the configuration store was closed')
      return await this.#open()
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  /** A table whose methods wait for the store. All of them are asynchronous. */
  #late<Name extends keyof ConfigStore>(name: Name): ConfigStore[Name] {
    const methods = new Map<string | symbol, (...args: unknown[]) => Promise<unknown>>()
    return new Proxy({} as ConfigStore[Name] & object, {
      get: (_, method) => {
        // `await` must not take the proxy for a promise.
        if (method === 'then') return undefined
        const known = methods.get(method)
        if (known !== undefined) return known
        const call = async (...args: unknown[]): Promise<unknown> => {
          const table = (await this.opened())[name] as unknown as Record<
            string | symbol,
            (...all: unknown[]) => unknown
          >
          return await table[method]!(...args)
        }
        methods.set(method, call)
        return call
      },
    })
  }
}

async function* loadLate(opened: () => Promise<ChangeFeed>): AsyncIterable<ChangeBatch> {
  yield* (await opened()).load()
}
