import type { Block, Incident, Membership, Override } from '@sluice/core/policy'
import type { ChangeFeed, EntryChange, VersionsInForce } from '../config-store.ts'
import type { VersionContent } from '../rule-set-versions.ts'

type Followed = Extract<EntryChange, { key: unknown }>

/** What a node knows that follows a feed. */
export interface FeedState {
  readonly enforced: VersionContent | undefined
  readonly candidate: VersionContent | undefined
  readonly overrides: readonly Override[]
  readonly members: readonly Membership[]
  readonly blocks: readonly Block[]
  readonly incident: Incident | undefined
  readonly apiKeys: readonly unknown[]
}

/** The simplest follower of a feed there is: applies what comes, in the order it comes. */
export class FeedReader {
  readonly #feed: ChangeFeed
  readonly #entries = new Map<string, unknown>()
  #versions: VersionsInForce = { enforced: undefined, candidate: undefined }
  #incident: Incident | undefined
  #position: number
  #batches = 0

  constructor(feed: ChangeFeed, position: number) {
    this.#feed = feed
    this.#position = position
  }

  static async load(feed: ChangeFeed): Promise<FeedReader> {
    const reader = new FeedReader(feed, 0)
    for await (const { position, versions, changes } of feed.load()) reader.#apply(position, versions, changes)
    return reader
  }

  get position(): number {
    return this.#position
  }

  /** How many batches had something in them. */
  get batches(): number {
    return this.#batches
  }

  get overrides(): readonly Override[] {
    return this.#of<Override>('override')
  }

  get state(): FeedState {
    return {
      ...this.#versions,
      overrides: this.overrides,
      members: this.#of<Membership>('member'),
      blocks: this.#of<Block>('block'),
      incident: this.#incident,
      apiKeys: this.#of('api-key'),
    }
  }

  /** Reads all there is. Resolves with how many batches had something in them. */
  async follow(): Promise<number> {
    const before = this.#batches
    for (;;) {
      const { restart, position, versions, changes, more } = await this.#feed.since(this.#position)
      if (restart) throw new Error(`the feed cannot go on from ${this.#position}`)
      if (position < this.#position) throw new Error(`the feed went back from ${this.#position} to ${position}`)
      this.#apply(position, versions, changes)
      if (!more) return this.#batches - before
    }
  }

  #apply(position: number, versions: VersionsInForce | undefined, changes: readonly EntryChange[]): void {
    if (position !== this.#position) this.#batches++
    this.#position = position
    if (versions !== undefined) this.#versions = versions
    for (const change of changes) {
      if (change.kind === 'incident') this.#incident = change.entry
      else this.#applyEntry(change)
    }
  }

  #applyEntry({ kind, key, entry }: Followed): void {
    const name = `${kind} ${JSON.stringify(key)}`
    if (entry === undefined) this.#entries.delete(name)
    else this.#entries.set(name, entry)
  }

  #of<T>(kind: string): readonly T[] {
    const names = [...this.#entries.keys()].filter((name) => name.startsWith(`${kind} `)).sort()
    return names.map((name) => this.#entries.get(name) as T)
  }
}
