import type { Explanation, LimitStep, RuleExplanation } from '@sluice/contract'
import type { JSX } from 'preact'
import type { Tone } from '../../ui/controls/badge.tsx'
import { Badge } from '../../ui/controls/badge.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Card } from '../../ui/shell/page.tsx'
import { countText, durationText, instantText } from '../../ui/theme/format.ts'
import { CounterMeter } from '../callers/counter-meter.tsx'
import classes from './explain.module.css'

type Fate = RuleExplanation['fate']

const FATES: Readonly<Record<Fate, { readonly label: string; readonly tone: Tone }>> = {
  applies: { label: 'applies', tone: 'accent' },
  shadow: { label: 'shadow', tone: 'warning' },
  replaced: { label: 'replaced', tone: 'neutral' },
  'no-match': { label: 'no match', tone: 'neutral' },
  'no-identity': { label: 'no identity', tone: 'neutral' },
  off: { label: 'no limit', tone: 'neutral' },
  disabled: { label: 'disabled', tone: 'neutral' },
}

/** Everything that bears on the decision of a request. */
export function ExplanationView({ explanation }: { explanation: Explanation }): JSX.Element {
  const { rules } = explanation
  const decided = rules.filter(({ fate }) => fate === 'applies' || fate === 'shadow' || fate === 'off')
  const others = rules.filter((rule) => !decided.includes(rule))
  return (
    <>
      <Verdict explanation={explanation} />
      <Card
        title={decided.length === 1 ? '1 rule counts this request' : `${decided.length} rules count this request`}
        isFlush
      >
        {decided.length === 0 ? (
          <p class={classes.none}>No rule counts this request, so nothing limits it.</p>
        ) : (
          <ul>
            {decided.map((rule) => (
              <RuleRow
                key={rule.rule}
                rule={rule}
                isDecisive={rule.rule === explanation.decision.rule}
                isDenied={!explanation.decision.allowed}
              />
            ))}
          </ul>
        )}
      </Card>
      {others.length === 0 ? null : (
        <Card title="Considered, and not for this request" isFlush>
          <ul>
            {others.map((rule) => (
              <RuleRow key={rule.rule} rule={rule} />
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}

/** The decision in one line, and what else decided. */
function Verdict({ explanation }: { explanation: Explanation }): JSX.Element {
  const { decision, version, tier, exemption, denied, block, readings } = explanation
  return (
    <section class={classes.verdict} data-allowed={decision.allowed}>
      <strong>{decision.allowed ? 'Would be allowed' : 'Would be denied'}</strong>
      <span>{reasonOf(explanation)}</span>
      <span class={classes.facts}>
        <Badge>version {version}</Badge>
        {tier === undefined ? null : (
          <Badge tone="accent">
            tier {tier.name}, from {tier.from}
          </Badge>
        )}
        {exemption === undefined ? null : <Badge tone="good">exemption {exemption}</Badge>}
        {denied === undefined ? null : <Badge tone="denied">deny list {denied}</Badge>}
        {block === undefined ? null : <Badge tone="denied">blocked until {instantText(block.until)}</Badge>}
        {readings.length > 1 ? <Badge tone="warning">read as {readings.join(' and ')}</Badge> : null}
      </span>
    </section>
  )
}

function callsText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'call' : 'calls'}`
}

function reasonOf({ decision, denied, block, exemption, rules }: Explanation): string {
  if (denied !== undefined) return `The deny list denies it whatever the rules say: entry ${denied}.`
  if (block !== undefined) return `The caller is blocked${block.reason === undefined ? '.' : `: ${block.reason}.`}`
  const own = rules.find(({ rule, fate }) => rule === decision.rule && fate === 'applies')
  const who =
    own?.entity === undefined || own.dimension === 'global' ? 'All callers together' : `${own.dimension} ${own.entity}`
  if (decision.allowed) {
    if (own === undefined) {
      return exemption === undefined ? 'No rule limits it.' : `Exemption ${exemption} says that no rule limits it.`
    }
    const { remaining } = decision
    if (remaining === null) return 'The store did not answer.'
    return `${who} has ${callsText(remaining)} left under ${own.rule}.`
  }
  if (decision.reason === 'never') return 'It takes more than the limit can ever give: waiting does not help.'
  if (own === undefined) return `Denied: ${decision.reason}.`
  const wait =
    decision.retryAfter === null || decision.retryAfter === undefined
      ? ''
      : ` Again in ${durationText(decision.retryAfter * 1000)}.`
  return `${who} has used up ${own.rule}.${wait}`
}

interface RuleRowProps {
  readonly rule: RuleExplanation
  /** Whether the decision is by this rule. */
  readonly isDecisive?: boolean
  readonly isDenied?: boolean
}

function RuleRow({ rule, isDecisive = false, isDenied = false }: RuleRowProps): JSX.Element {
  const { label, tone } = FATES[rule.fate]
  return (
    <li class={classes.rule} data-compact={rule.counters.length === 0}>
      <div class={classes.ruleHead}>
        <Badge tone={tone}>{label}</Badge>
        <Link to={`/rules?search=${encodeURIComponent(rule.resource)}`} class={classes.ruleName}>
          {rule.rule}
        </Link>
        {rule.rule.includes(rule.resource) ? null : <span class={classes.entity}>{callText(rule)}</span>}
        {isDecisive && rule.fate === 'applies' ? <Badge tone={isDenied ? 'denied' : 'good'}>decides</Badge> : null}
        {rule.origin === 'rules' ? null : <Badge>{rule.origin}</Badge>}
        {rule.entity === undefined ? null : (
          <span class={classes.entity}>
            counts {rule.dimension} <b>{rule.entity}</b>
          </span>
        )}
      </div>
      <p class={classes.why}>{rule.why}</p>
      {rule.steps.length > 1 ? <Steps steps={rule.steps} /> : null}
      {rule.counters.map((counter, index) => (
        <CounterMeter key={index} counter={counter} />
      ))}
    </li>
  )
}

/** The calls that a rule is for, as it was written. Its name has `:any` for each parameter, or says nothing of them. */
function callText({ methods, resource }: RuleExplanation): string {
  return `for ${methods === undefined ? '' : `${methods.join(' ')} `}${resource}`
}

/** How the limit comes about: rule, then override or tier, region, schedule, incident. */
function Steps({ steps }: { steps: readonly LimitStep[] }): JSX.Element {
  return (
    <ol class={classes.steps} aria-label="How the limit comes about">
      {steps.map(({ source, change, limit }) => (
        <li key={`${source} ${change}`}>
          <span>{source}</span>
          <b>{limit === 'off' ? 'no limit' : countText(limit)}</b>
          <small>{change}</small>
        </li>
      ))}
    </ol>
  )
}
