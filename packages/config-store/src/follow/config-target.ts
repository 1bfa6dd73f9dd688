import { checkOptionNames } from '@sluice/core/internal'
import type { PolicyEngine, PolicyVersions } from '@sluice/core/policy'
import type { EntryChange, VersionsInForce } from '../config-store.ts'
import type { VersionContent } from '../rule-set-versions.ts'

/**
 * The receiver of configuration: the policy engine of this process. Every call takes effect before it returns. Calls do
 * not overlap.
 *
 * A reload delivers everything in batches: `beginReload`, then `apply` for every existing entry, then `endReload`. The
 * previous entries stay active until then, so there is no gap. A reload may stop halfway if the database becomes
 * unreachable; the next one starts with `beginReload` again.
 */
export interface ConfigTarget {
  /**
   * Leading bits of an IPv6 address that identify a caller. Following a feed with another length fails. Default: not
   * checked.
   */
  readonly ipv6PrefixLength?: number
  /**
   * Activates versions. Throws if they cannot be used; the previous ones stay active. The error is reported, and the
   * same versions are not offered again.
   */
  useVersions(versions: VersionsInForce): void
  /** Applies the current state of entries. Does not throw: the target reports entries that it cannot use. */
  apply(changes: readonly EntryChange[]): void
  beginReload(): void
  /** Completes the reload: entries that were not applied since `beginReload` no longer exist. */
  endReload(): void
}

/** Options of {@link engineTarget}. */
export interface EngineTargetOptions {
  /** Receives the same changes, for entries that the engine does not use: API keys. */
  readonly others?: Pick<ConfigTarget, 'apply' | 'beginReload' | 'endReload'>
}

/** A target that keeps a policy engine up to date, for `followConfig` and `fileConfig`. */
export function engineTarget(engine: PolicyEngine, options: EngineTargetOptions = {}): ConfigTarget {
  checkOptionNames(options, { name: 'engineTarget', options: ['others'], example: '{ others: apiKeys }' })
  const { others } = options
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
    // The engine does not use API keys.
  }
}
