import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { Calls, DecisionRecord } from '@sluice/contract'
import { navigate } from '../../ui/navigation/router.ts'
import type { Command } from '../../ui/overlay/command-palette.tsx'

/** The dimensions by which callers are looked up, and what the page calls them. */
export const CALLER_DIMENSIONS = [
  { value: 'user', label: 'User' },
  { value: 'apiKey', label: 'API key' },
  { value: 'ip', label: 'Address' },
  { value: 'tenant', label: 'Tenant' },
  { value: 'service', label: 'Service' },
] as const

/** One of {@link CALLER_DIMENSIONS}. */
export type CallerDimension = (typeof CALLER_DIMENSIONS)[number]['value']

/** Somebody who is counted. */
export interface Caller {
  readonly dimension: string
  readonly entity: string
}

/** Whether callers of a dimension can be looked up. */
function isCallerDimension(dimension: string): dimension is CallerDimension {
  return CALLER_DIMENSIONS.some(({ value }) => value === dimension)
}

/** A caller as people read it: `user ada`. */
export function callerText({ dimension, entity }: Caller): string {
  const label = CALLER_DIMENSIONS.find(({ value }) => value === dimension)?.label.toLowerCase()
  if (label === undefined) return `${dimension} ${entity}`
  return `${dimension === 'apiKey' ? 'API key' : label} ${entity}`
}

/** The page with the counters of a caller; undefined for one that cannot be looked up, such as a combination. */
export function usagePath({ dimension, entity }: Caller): string | undefined {
  return isCallerDimension(dimension) && dimension !== 'apiKey'
    ? `/usage?${new URLSearchParams({ [dimension]: entity })}`
    : undefined
}

const asked = signal<string | undefined>(undefined)

/** The API key whose counters are wanted. It may be a secret: it is kept in memory and never put into the URL. */
export const askedKey: ReadonlySignal<string | undefined> = asked

/** Opens the page with the counters of a caller. */
export function openUsage(caller: Caller): void {
  asked.value = caller.dimension === 'apiKey' ? caller.entity : undefined
  navigate(usagePath(caller) ?? '/usage')
}

/** Forgets the API key whose counters were wanted. */
export function forgetAskedKey(): void {
  asked.value = undefined
}

/** What was typed in the palette may be a caller: leads to its counters. */
export function callerCommands(typed: string): readonly Command[] {
  if (typed === '') return []
  return CALLER_DIMENSIONS.map(({ value, label }) => ({
    label: `Usage of ${value === 'apiKey' ? label : label.toLowerCase()} ${typed}`,
    icon: 'usage',
    group: 'Callers',
    run: () => openUsage({ dimension: value, entity: typed }),
  }))
}

/** The fields of a check that Explain shows and that may stand in a URL. Keys of callers are secrets, and may not. */
export const LINKED_FIELDS = ['resource', 'method', 'user', 'ip', 'tenant', 'service', 'region', 'tier'] as const

/** The page that explains a call like this one. */
export function explainPath(request: Partial<Calls['explain']['body']>): string {
  const query = new URLSearchParams()
  for (const name of LINKED_FIELDS) {
    const value = request[name]
    if (value !== undefined) query.set(name, value)
  }
  if (request.tokens !== undefined && request.tokens !== 1) query.set('tokens', String(request.tokens))
  return `/explain?${query}`
}

/**
 * The caller that a decision counted, as overrides name it: an API key by its digest. Undefined where no rule applied,
 * or where a key is one of several parts.
 */
export function countedCaller({ dimension, caller, hidden }: DecisionRecord): Caller | undefined {
  if (caller === undefined || dimension === 'global') return undefined
  if (hidden.includes(dimension)) return { dimension, entity: `digest:${caller}` }
  const isSecret = dimension.split('+').some((name) => hidden.includes(name))
  return isSecret ? undefined : { dimension, entity: caller }
}
