import { memoryStore, PolicyEngine, type PolicyVersions } from '@sluice/core'
import type { EntryChange } from '../change-feed.ts'
import type { ConfigTarget } from '../config-target.ts'
import type { VersionContent } from '../version.ts'

/** A node: an engine with counters of its own, and the target that keeps it up to date. */
export function engineNode(): { readonly engine: PolicyEngine<'sync'>; readonly target: ConfigTarget } {
  const engine = new PolicyEngine({ store: memoryStore() })
  return {
    engine,
    target: {
      useVersions: ({ enforced, candidate }) =>
        engine.use({ ...(enforced && { enforced }), ...candidateOf(candidate) }),
      apply: (changes) => {
        for (const change of changes) put(engine, change)
      },
      beginReload: () => engine.entries.beginReload(),
      endReload: () => engine.entries.endReload(),
    },
  }
}

/** How many of so many calls are allowed. */
export function allowedOf(engine: PolicyEngine<'sync'>, user: string, calls: number): number {
  let allowed = 0
  for (let call = 0; call < calls; call++) if (engine.check({ resource: '/orders', user }).allowed) allowed++
  return allowed
}

function candidateOf(candidate: VersionContent | undefined): Pick<PolicyVersions, 'candidate'> {
  if (candidate === undefined) return {}
  const stage = candidate.stage === 'percent' ? 'percent' : 'shadow'
  return { candidate: { number: candidate.number, ruleSet: candidate.ruleSet, stage, percent: candidate.percent } }
}

function put({ entries }: PolicyEngine<'sync'>, change: EntryChange): void {
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
  }
}
