import type { Membership, Override } from '../../entries/live-entry.ts'
import { parseInstant } from '../instant.ts'
import type { DenyEntry, RuleSet } from '../rule-set.ts'

/** An entry as it is written in a file: its end may be a text such as `2026-12-31T23:59:59Z`. */
export type InFile<E extends { readonly expiresAt?: number }> = Omit<E, 'expiresAt'> & {
  readonly expiresAt?: number | string
}

/** The parts of a file that describe a gateway, unchecked: who runs the gateway knows what they may say. */
export interface GatewayParts {
  readonly gateway?: Readonly<Record<string, unknown>>
  readonly routes?: readonly unknown[]
  readonly upstreams?: Readonly<Record<string, unknown>>
}

/** A rule set as it is written in a file such as `sluice.yaml`. */
export interface RuleSetFile extends Omit<RuleSet, 'denyList'>, GatewayParts {
  /** Where editors find the schema. */
  readonly $schema?: string
  /** Version of the form of the file. */
  readonly version?: 1
  /** Settings of the service, which are no part of the rule set. */
  readonly service?: Readonly<Record<string, unknown>>
  readonly denyList?: readonly InFile<DenyEntry>[]
  readonly overrides?: readonly InFile<Override>[]
  readonly members?: readonly InFile<Membership>[]
}

/** What is in a file, as it is used. */
export interface FileContent {
  /** Settings of the service as they stand there, unchecked; left out when there are none. */
  readonly service?: Readonly<Record<string, unknown>>
  /** The parts for a gateway as they stand there; left out when there are none. */
  readonly gateway?: GatewayParts
  readonly ruleSet: RuleSet
  readonly overrides: readonly Override[]
  readonly members: readonly Membership[]
}

/** What is in a file that `checkRuleSetFile` found nothing wrong with. */
export function fileContent(file: RuleSetFile): FileContent {
  const { $schema: _schema, version: _version, service, denyList, overrides = [], members = [], ...others } = file
  const { gateway: _gateway, routes: _routes, upstreams: _upstreams, ...ruleSet } = others
  const gateway = gatewayPartsOf(file)
  return {
    ...(service === undefined ? {} : { service }),
    ...(gateway === undefined ? {} : { gateway }),
    ruleSet: denyList === undefined ? ruleSet : { ...ruleSet, denyList: denyList.map(withInstant) },
    overrides: overrides.map(withInstant),
    members: members.map(withInstant),
  }
}

/** The parts of a file that describe a gateway; undefined when there are none. */
export function gatewayPartsOf({ gateway, routes, upstreams }: GatewayParts): GatewayParts | undefined {
  if (gateway === undefined && routes === undefined && upstreams === undefined) return undefined
  return {
    ...(gateway === undefined ? {} : { gateway }),
    ...(routes === undefined ? {} : { routes }),
    ...(upstreams === undefined ? {} : { upstreams }),
  }
}

function withInstant<E extends { readonly expiresAt?: number | string }>(
  entry: E,
): Omit<E, 'expiresAt'> & { readonly expiresAt?: number } {
  const { expiresAt, ...others } = entry
  if (expiresAt === undefined) return others
  return { ...others, expiresAt: typeof expiresAt === 'string' ? parseInstant(expiresAt)! : expiresAt }
}
