import type { Membership, Override } from '../../entries/live-entry.ts'
import { parseInstant } from '../instant.ts'
import type { DenyEntry, RuleSet } from '../rule-set.ts'

/** An entry in a file: its expiry may be a string such as `2026-12-31T23:59:59Z`. */
export type InFile<E extends { readonly expiresAt?: number }> = Omit<E, 'expiresAt'> & {
  readonly expiresAt?: number | string
}

/** The parts of a file that describe a gateway, unchecked: the gateway checks them. */
export interface GatewayParts {
  readonly gateway?: Readonly<Record<string, unknown>>
  readonly routes?: readonly unknown[]
  readonly upstreams?: Readonly<Record<string, unknown>>
}

/** The content of a file such as `sluice.yaml`. */
export interface RuleSetFile extends Omit<RuleSet, 'denyList'>, GatewayParts {
  /** Path of the schema, for editors. */
  readonly $schema?: string
  /** Version of the file format. */
  readonly version?: 1
  /** Settings of the service, not part of the rule set. */
  readonly service?: Readonly<Record<string, unknown>>
  readonly denyList?: readonly InFile<DenyEntry>[]
  readonly overrides?: readonly InFile<Override>[]
  readonly members?: readonly InFile<Membership>[]
}

/** The parsed content of a file. */
export interface FileContent {
  /** Settings of the service, unchecked. Absent if there are none. */
  readonly service?: Readonly<Record<string, unknown>>
  /** The gateway parts, unchecked. Absent if there are none. */
  readonly gateway?: GatewayParts
  readonly ruleSet: RuleSet
  readonly overrides: readonly Override[]
  readonly members: readonly Membership[]
}

/** The content of a file that passed `checkRuleSetFile`. */
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

/** The parts of a file that describe a gateway; undefined if there are none. */
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
