import type { PolicyEngine, PolicyVersions } from '@sluice/core'
import type { EntryChange } from '../change-feed.ts'
import type { VersionContent } from '../versions.ts'
import type { ConfigTarget } from './config-target.ts'

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
