import { describeRule } from '@sluice/core/internal'
import type { PolicyRule } from '@sluice/core/policy'
import type { JSX } from 'preact'
import type { Tone } from '../../../ui/controls/badge.tsx'
import { Badge } from '../../../ui/controls/badge.tsx'
import classes from './versions.module.css'

/** One thing that differs between two rule sets, as the core and the API tell it. */
export interface Change {
  readonly change: 'added' | 'removed' | 'changed'
  readonly part: string
  readonly name: string
  readonly before?: unknown
  readonly after?: unknown
}

const TONES: Readonly<Record<Change['change'], Tone>> = { added: 'good', removed: 'danger', changed: 'accent' }

const PARTS: Readonly<Record<string, string>> = {
  rules: 'rule',
  tiers: 'tier',
  exemptions: 'exemption',
  denyList: 'deny list',
  domains: 'domain',
}

/** What changes, in sentences and values. */
export function ChangeList({ changes }: { changes: readonly Change[] }): JSX.Element {
  if (changes.length === 0) return <p class={classes.muted}>Nothing changes.</p>
  return (
    <ul class={classes.changes}>
      {changes.map((change) => (
        <li key={`${change.part} ${change.name}`}>
          <div class={classes.changeHead}>
            <Badge tone={TONES[change.change]}>{change.change}</Badge>
            <span>{PARTS[change.part] ?? change.part}</span>
            <code>{change.name === '' && Array.isArray(change.after) ? 'order' : change.name}</code>
          </div>
          {change.part === 'rules' ? <RuleSentences change={change} /> : null}
          <PropertyChanges change={change} />
        </li>
      ))}
    </ul>
  )
}

function RuleSentences({ change: { before, after } }: { change: Change }): JSX.Element {
  return (
    <>
      {before === undefined ? null : <p class={classes.before}>{describeRule(before as PolicyRule).join(' ')}</p>}
      {after === undefined ? null : <p class={classes.after}>{describeRule(after as PolicyRule).join(' ')}</p>}
    </>
  )
}

/** The properties that differ. An entry that is new or gone is shown by its sentences, or whole. */
function PropertyChanges({ change: { before, after, part } }: { change: Change }): JSX.Element | null {
  if ((before === undefined || after === undefined) && part === 'rules') return null
  return (
    <dl class={classes.properties}>
      {propertyChanges(before, after).map(({ name, from, to }) => (
        <div key={name}>
          <dt>{name === '' ? 'value' : name}</dt>
          <dd>
            {from === undefined ? null : <del>{from}</del>}
            {to === undefined ? null : <ins>{to}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface PropertyChange {
  readonly name: string
  readonly from: string | undefined
  readonly to: string | undefined
}

/** What differs between two values, by property where both have some. */
export function propertyChanges(before: unknown, after: unknown): readonly PropertyChange[] {
  const [old, now] = [partsOf(before), partsOf(after)]
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap((name) => {
    const [from, to] = [valueText(old[name]), valueText(now[name])]
    return from === to ? [] : [{ name, from, to }]
  })
}

function partsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined) return {}
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? (value as Readonly<Record<string, unknown>>) : { '': value }
}

function valueText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
