import { SluiceError } from '@sluice/core'
import type { Block, Membership, Override, RuleSet } from '@sluice/core/policy'
import type { ChangeBatch, ChangeFeed, EntryChange, VersionsInForce } from '../config-store.ts'
import type { VersionContent } from '../rule-set-versions.ts'
import type { ConfigTarget } from './config-target.ts'
import { encodeEntryKey } from './entry-encoding.ts'

/** A version with a rule set, as a store would hand it out. */
export function version(number: number, ruleSet: RuleSet = { rules: [] }): VersionContent {
  const stage = 'enforce' as const
  const basedOn = undefined
  return {
    number,
    stage,
    percent: 0,
    basedOn,
    createdAt: 0,
    createdBy: 'test',
    enforcedAt: undefined,
    note: undefined,
    revision: 1,
    ruleSet,
  }
}

export function enforced(number: number): VersionsInForce {
  return { enforced: version(number), candidate: undefined }
}

export function overrideOf(entity: string, limit: number): EntryChange & { kind: 'override' } {
  const key = { dimension: 'user', entity, resource: '*' }
  const entry: Override = { ...key, terms: { limit } }
  return { kind: 'override', key, entry }
}

export function memberOf(entity: string, tier: string): EntryChange {
  const key = { dimension: 'user', entity }
  const entry: Membership = { ...key, tier }
  return { kind: 'member', key, entry }
}

export function blockOf(entity: string, until: number): EntryChange {
  const key = { dimension: 'ip', entity }
  const entry: Block = { ...key, until, strikes: 1, forgottenAt: until + 1 }
  return { kind: 'block', key, entry }
}

export function removed(change: EntryChange): EntryChange {
  if (change.kind === 'incident') return { ...change, entry: { active: false } }
  return { ...change, entry: undefined }
}

const AWAY = (): SluiceError =>
  new SluiceError('SLUICE_CONFIG_UNAVAILABLE', { problem: 'the fake feed is unavailable' })

/** A change feed in memory, which can be away, hang, and lose hints. */
export class FakeFeed implements ChangeFeed {
  readonly #watchers = new Set<{ changed: () => void; lost: (error: unknown) => void }>()
  readonly #log: { position: number; change?: EntryChange; versions?: VersionsInForce }[] = []
  #versions: VersionsInForce = { enforced: undefined, candidate: undefined }
  readonly #entries = new Map<string, EntryChange>()
  #head = 0
  #floor = 0
  /** Calls that reached it. */
  readonly calls = { load: 0, since: 0, watch: 0 }
  /** Most changes in a batch. */
  batchSize = 1000
  isAway = false
  /** Whether hints are swallowed. */
  isMute = false
  /** Resolves calls only when it does; for a database that does not answer. */
  gate: Promise<void> | undefined
  /** Called between two batches of a load. */
  betweenBatches: (() => void | Promise<void>) | undefined

  get watchers(): number {
    return this.#watchers.size
  }

  commit(...changes: readonly EntryChange[]): void {
    for (const change of changes) {
      this.#log.push({ position: ++this.#head, change })
      if (change.entry === undefined) this.#entries.delete(encodeEntryKey(change))
      else this.#entries.set(encodeEntryKey(change), change)
    }
    this.hint()
  }

  use(versions: VersionsInForce): void {
    this.#versions = versions
    this.#log.push({ position: ++this.#head, versions })
    this.hint()
  }

  hint(): void {
    if (!this.isMute) for (const { changed } of this.#watchers) changed()
  }

  lose(error: unknown): void {
    for (const { lost } of this.#watchers) lost(error)
  }

  /** Forgets the log up to now, as a store does that keeps removals for some days only. */
  prune(): void {
    this.#floor = this.#head
    this.#log.length = 0
  }

  /** Everything as it is, in the order of keys. */
  content(): readonly EntryChange[] {
    return [...this.#entries.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, change]) => change)
  }

  head(): Promise<number> {
    return this.#reach(() => this.#head)
  }

  async *load(): AsyncGenerator<ChangeBatch> {
    this.calls.load++
    const position = await this.#reach(() => this.#head)
    yield { position, versions: this.#versions, changes: [], more: true, restart: false }
    const entries = this.content()
    for (let from = 0; from < entries.length; from += this.batchSize) {
      await this.betweenBatches?.()
      await this.#reach(() => undefined)
      yield {
        position,
        versions: undefined,
        changes: entries.slice(from, from + this.batchSize),
        more: true,
        restart: false,
      }
    }
  }

  since(position: number): Promise<ChangeBatch> {
    this.calls.since++
    return this.#reach(() => {
      if (position < this.#floor) return { position, versions: undefined, changes: [], more: false, restart: true }
      const fresh = this.#log.filter((record) => record.position > position)
      const part = fresh.slice(0, this.batchSize)
      return {
        position: part.at(-1)?.position ?? Math.min(position, this.#head),
        versions: part.findLast(({ versions }) => versions !== undefined)?.versions,
        changes: part.flatMap(({ change }) => (change === undefined ? [] : [change])),
        more: fresh.length > part.length,
        restart: false,
      }
    })
  }

  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>> {
    this.calls.watch++
    return this.#reach(() => {
      const watcher = { changed, lost }
      this.#watchers.add(watcher)
      return () => {
        this.#watchers.delete(watcher)
        return Promise.resolve()
      }
    })
  }

  async #reach<T>(answer: () => T): Promise<T> {
    await this.gate
    if (this.isAway) throw AWAY()
    return answer()
  }
}

/** A target that records its calls, and takes no version with a number in `unusable`. */
export class RecordingTarget implements ConfigTarget {
  readonly #entries = new Map<string, EntryChange>()
  #reloaded: Set<string> | undefined
  readonly unusable: Set<number> = new Set()
  readonly log: string[] = []
  versions: VersionsInForce = { enforced: undefined, candidate: undefined }

  useVersions(versions: VersionsInForce): void {
    for (const one of [versions.enforced, versions.candidate]) {
      if (one !== undefined && this.unusable.has(one.number)) throw new Error(`version ${one.number} is beyond me`)
    }
    this.versions = versions
    this.log.push(`use ${versions.enforced?.number ?? '-'}/${versions.candidate?.number ?? '-'}`)
  }

  apply(changes: readonly EntryChange[]): void {
    for (const change of changes) {
      const start = encodeEntryKey(change)
      this.#reloaded?.add(start)
      if (change.entry === undefined) this.#entries.delete(start)
      else this.#entries.set(start, change)
    }
    this.log.push(`apply ${changes.length}`)
  }

  beginReload(): void {
    this.#reloaded = new Set()
    this.log.push('begin')
  }

  endReload(): void {
    for (const start of this.#entries.keys()) if (!this.#reloaded!.has(start)) this.#entries.delete(start)
    this.#reloaded = undefined
    this.log.push('end')
  }

  /** Everything it holds, in the order of keys. */
  content(): readonly EntryChange[] {
    return [...this.#entries.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, change]) => change)
  }
}
