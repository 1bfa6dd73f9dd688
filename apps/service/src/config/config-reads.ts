import type {
  ConfigStore,
  ConfigTarget,
  EntryChange,
  EntryFilter,
  Page,
  PageRequest,
  Stored,
  Version,
  VersionContent,
  VersionsInForce,
} from '@sluice/config-store'
import type { Membership, Override, RuleSetChange } from '@sluice/core/policy'
import { diffRuleSets, RuleSetError } from '@sluice/core/policy'
import { pageOfList } from '../operations/paging.ts'
import { notFound } from '../operations/problems.ts'
import type { StateSizeCheck } from './state-size-check.ts'

/** An entry of a caller. */
type Entry = Override | Membership

/** Entries that a rules file contains. Those in the database are ignored then. */
const OF_FILE: ReadonlySet<EntryChange['kind']> = new Set(['override', 'member'])

/**
 * The configuration of a service whose rules come from a file, as the admin API shows it. It sits between the follower
 * of the file and the target, and keeps what passes. A file has one version at a time. Runtime state (blocks, incident,
 * API keys) comes from the database.
 */
export class FileConfigReads implements ConfigReads {
  /** Path of the file, as in responses. */
  readonly file: string
  readonly #overrides = new Map<string, Override>()
  readonly #members = new Map<string, Membership>()
  readonly #fit: StateSizeCheck
  #inForce: VersionsInForce = { enforced: undefined, candidate: undefined }

  /** `fit`: rejects rules whose state does not fit into the memory that threads share. */
  constructor(file: string, fit: StateSizeCheck) {
    this.file = file
    this.#fit = fit
  }

  /** The target for `fileConfig`. Forwards everything to `target`. */
  watch(target: ConfigTarget): ConfigTarget {
    return {
      useVersions: (versions) => {
        this.#rejectUnfit(versions)
        target.useVersions(versions)
        this.#inForce = versions
      },
      apply: (changes) => {
        target.apply(changes)
        for (const change of changes) this.#note(change)
      },
      beginReload: () => target.beginReload(),
      endReload: () => target.endReload(),
    }
  }

  /**
   * The target for the follower of the database. Forwards what no file contains to `target`, which must be the one
   * passed to `watch`.
   */
  beside(target: ConfigTarget): ConfigTarget {
    return {
      useVersions: () => undefined,
      apply: (changes) => target.apply(changes.filter(({ kind }) => !OF_FILE.has(kind))),
      beginReload: () => {
        target.beginReload()
        // The end of a reload drops entries that were not repeated, and the database does not send those of the file.
        target.apply(this.#changes())
      },
      endReload: () => target.endReload(),
    }
  }

  readonly versions: ConfigReads['versions'] = {
    get: (number: number): Promise<VersionContent | undefined> => Promise.resolve(this.#version(number)),
    list: (page: PageRequest = {}): Promise<Page<Version>> => {
      const { enforced } = this.#inForce
      return this.#page(enforced === undefined ? [] : [withoutRules(enforced)], ({ number }) => String(number), page)
    },
    current: () => Promise.resolve(this.#inForce),
    diff: async (from: number, to: number): Promise<readonly RuleSetChange[]> =>
      diffRuleSets(this.#existing(from).ruleSet, this.#existing(to).ruleSet),
  }

  readonly overrides: ConfigReads['overrides'] = {
    list: (filter = {}) => this.#entries([...this.#overrides.values()], filter),
  }

  readonly members: ConfigReads['members'] = {
    list: (filter = {}) => this.#entries([...this.#members.values()], filter),
  }

  #rejectUnfit({ enforced }: VersionsInForce): void {
    const problems = enforced === undefined ? [] : this.#fit.problemsOf(enforced.ruleSet)
    if (problems.length > 0) throw new RuleSetError(problems, this.file)
  }

  #version(number: number): VersionContent | undefined {
    const { enforced } = this.#inForce
    return enforced?.number === number ? enforced : undefined
  }

  #existing(number: number): VersionContent {
    const version = this.#version(number)
    if (version !== undefined) return version
    throw notFound(`version ${number}: of ${this.file} there is only the one in force`)
  }

  #note(change: EntryChange): void {
    if (change.kind === 'override') put(this.#overrides, nameOf(change.key), change.entry)
    else if (change.kind === 'member') put(this.#members, nameOf(change.key), change.entry)
  }

  /** All entries of the file. */
  #changes(): readonly EntryChange[] {
    const overrides = [...this.#overrides.values()].map(
      (entry): EntryChange => ({ kind: 'override', key: entry, entry }),
    )
    const members = [...this.#members.values()].map((entry): EntryChange => ({ kind: 'member', key: entry, entry }))
    return [...overrides, ...members]
  }

  #entries<E extends Entry>(all: readonly E[], { dimension, entity, ...page }: EntryFilter): Promise<Page<Stored<E>>> {
    const found = all.filter(
      (entry) =>
        (dimension === undefined || entry.dimension === dimension) && (entity === undefined || entry.entity === entity),
    )
    const named = found.map((entry) => ({ name: nameOf(entry), entry }))
    named.sort((one, other) => (one.name < other.name ? -1 : 1))
    const stored = named.map(({ entry }) => this.#stored(entry))
    return this.#page(stored, ({ entry }) => nameOf(entry), page)
  }

  #page<T>(items: readonly T[], name: (item: T) => string, page: PageRequest): Promise<Page<T>> {
    return Promise.resolve(pageOfList(items, name, page))
  }

  /** An entry of the file. Its revision is that of the file. */
  #stored<E>(entry: E): Stored<E> {
    const { enforced } = this.#inForce
    return { entry, revision: enforced?.number ?? 0, changedAt: enforced?.createdAt ?? 0, changedBy: this.file }
  }
}

function nameOf(entry: { readonly dimension: string; readonly entity: string; readonly resource?: string }): string {
  return JSON.stringify([entry.dimension, entry.entity, entry.resource ?? ''])
}

function put<E>(entries: Map<string, E>, name: string, entry: E | undefined): void {
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
}

function withoutRules({ ruleSet: _ruleSet, ...version }: VersionContent): Version {
  return version
}

/** Readable configuration, in a database or in a file. */
export interface ConfigReads {
  readonly versions: Pick<ConfigStore['versions'], 'get' | 'list' | 'current' | 'diff'>
  readonly overrides: Pick<ConfigStore['overrides'], 'list'>
  readonly members: Pick<ConfigStore['members'], 'list'>
}

/** Runtime state, which only a database has. */
export interface DatabaseReads {
  readonly blocks: Pick<ConfigStore['blocks'], 'list'>
  readonly incident: Pick<ConfigStore['incident'], 'get'>
  readonly apiKeys: Pick<ConfigStore['apiKeys'], 'list'>
  readonly audit: Pick<ConfigStore['audit'], 'list'>
}
