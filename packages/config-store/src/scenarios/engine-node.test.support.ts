import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { type ConfigTarget, engineTarget } from '../follow/config-target.ts'

/** A node: an engine with counters of its own, and the target that keeps it up to date. */
export function engineNode(): { readonly engine: PolicyEngine<'sync'>; readonly target: ConfigTarget } {
  const engine = new PolicyEngine({ store: memoryStore() })
  return { engine, target: engineTarget(engine) }
}

/** How many of `count` calls of a user are allowed. */
export function allowedOf(engine: PolicyEngine<'sync'>, user: string, calls: number): number {
  let allowed = 0
  for (let call = 0; call < calls; call++) if (engine.check({ resource: '/orders', user }).allowed) allowed++
  return allowed
}
