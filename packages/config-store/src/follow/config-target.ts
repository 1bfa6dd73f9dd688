import type { PolicyEngine, PolicyVersions } from '@sluice/core'
import type { EntryChange, VersionsInForce } from '../config-store.ts'
import type { VersionContent } from '../versions.ts'

/**
 * What is kept up to date: the policy engine of this process. Every call takes effect at once, before it returns; calls come
 * one after the other.
 *
 * A reload is everything there is, in parts: `beginReload`, then `apply` for every entry that exists, then `endReload`. What
 * was there before stays in force until then, so that there is no moment without it. A reload may end in the middle when
 * the database is lost; the next one begins with `beginReload` again.
 */
export interface ConfigTarget {
  /** Bits of an IPv6 address that make one caller; only feeds that have the same are followed. Any when left out. */
  readonly ipv6PrefixLength?: number
  /**
   * What is in force from now on. Throws when it cannot be used, and then goes on with what was in force before: the reason is
   * reported, and the same versions are not offered again.
   */
  useVersions(versions: VersionsInForce): void
  /** Entries as they are now. Does not throw: one that cannot be used is the target's to report. */
  apply(changes: readonly EntryChange[]): void
  beginReload(): void
  /** The reload is complete: entries that were not applied since `beginReload` do not exist any more. */
  endReload(): void
}

/** What else is told of changes. */
export interface EngineTargetOptions {
  /** Is told of entries that are not the engine's: API keys. */
  readonly others?: Pick<ConfigTarget, 'apply' | 'beginReload' | 'endReload'>
}

/** The target that keeps a policy engine up to date, for `followConfig` and `fileConfig`. */
export function engineTarget(engine: PolicyEngine, { others }: EngineTargetOptions = {}): ConfigTarget {
  return {
    ipv6PrefixLength: engine.entries.ipv6PrefixLength,
    useVersions: ({ enforced, candidate }) => engine.use({ ...(enforced && { enforced }), ...candidateOf(candidate) }),
    apply(changes) {
      for (const change of changes) put(engine, change)
      others?.apply(changes)
    },
    beginReload() {
      engine.entries.beginReload()
      others?.beginReload()
    },
    endReload() {
      engine.entries.endReload()
      others?.endReload()
    },
  }
}

function candidateOf(candidate: VersionContent | undefined): Pick<PolicyVersions, 'candidate'> {
  if (candidate === undefined) return {}
  const { number, ruleSet, percent } = candidate
  return { candidate: { number, ruleSet, percent, stage: candidate.stage === 'percent' ? 'percent' : 'shadow' } }
}

function put({ entries }: PolicyEngine, change: EntryChange): void {
  switch (change.kind) {
    case 'override':
      if (change.entry === undefined) entries.removeOverride(change.key)
      else entries.putOverride(change.entry)
      return
    case 'member':
      if (change.entry === undefined) entries.removeMember(change.key)
      else entries.putMember(change.entry)
      return
    case 'block':
      if (change.entry === undefined) entries.removeBlock(change.key)
      else entries.putBlock(change.entry)
      return
    case 'incident':
      entries.setIncident(change.entry)
      return
    default:
    // API keys are no business of the engine.
  }
}
