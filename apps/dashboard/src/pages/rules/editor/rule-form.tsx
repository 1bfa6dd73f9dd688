import { describeRule, FAILURE_MODES } from '@sluice/core/internal'
import type { PolicyRule } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { Button } from '../../../ui/controls/button.tsx'
import { Checkbox, Select, TextInput } from '../../../ui/controls/field.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { LooseRule, RuleDocument } from '../document/rule-document.ts'
import { problemsOfRule, problemText } from '../document/rule-document.ts'
import classes from './editor.module.css'
import { OptionField } from './option-fields.tsx'
import {
  ALGORITHM_CHOICES,
  algorithmOf,
  fieldsOf,
  fieldText,
  hasWindows,
  typedValue,
  withAlgorithm,
  withOption,
  withSeveralWindows,
} from './rule-fields.ts'
import { YamlField } from './yaml-field.tsx'

const DIMENSIONS = [
  { value: 'user', label: 'each user' },
  { value: 'apiKey', label: 'each API key' },
  { value: 'ip', label: 'each address' },
  { value: 'tenant', label: 'each tenant' },
  { value: 'service', label: 'each internal service' },
  { value: 'global', label: 'all callers together' },
  { value: '', label: 'something else' },
] as const

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const FAILURE_CHOICES = [
  { value: '', label: 'as the service is set' },
  ...FAILURE_MODES.map((mode) => ({
    value: mode as string,
    label: { open: 'allow', closed: 'deny', local: 'decide on each node' }[mode],
  })),
]

export interface RuleFormProps {
  readonly document: RuleDocument
  readonly index: number
  readonly onChange: (rule: LooseRule) => void
  readonly onRemove: () => void
}

/** One rule as a form. Every problem stands at its field, as it is typed. */
export function RuleForm({ document, index, onChange, onRemove }: RuleFormProps): JSX.Element {
  const rule = document.value.rules[index]!
  const problems = problemsOfRule(document, index)
  const problemAt = (name: string): string | undefined => {
    const found = problems.get(`/${name}`)
    return found === undefined ? undefined : problemText(found)
  }
  const set = (name: string, value: unknown): void => onChange(withOption(rule, name, value))
  const whole = problems.get('')
  return (
    <Card
      title="Rule"
      actions={
        <Button kind="quiet" onClick={onRemove}>
          Remove rule
        </Button>
      }
    >
      <div class={classes.form}>
        <Summary
          rule={rule}
          isValid={problems.size === 0}
          problem={whole === undefined ? undefined : problemText(whole)}
        />
        <WhoAndWhat rule={rule} problemAt={problemAt} set={set} />
        <fieldset class={classes.group}>
          <legend>How often</legend>
          <Select
            label="Algorithm"
            value={algorithmOf(rule)}
            choices={ALGORITHM_CHOICES}
            onChange={(algorithm) => onChange(withAlgorithm(rule, algorithm))}
          />
          <div class={classes.fields}>
            {fieldsOf(rule).map((field) => (
              <OptionField
                key={field.name}
                field={field}
                value={rule[field.name]}
                problems={problems}
                onChange={(value) => set(field.name, value)}
              />
            ))}
          </div>
          {hasWindows(rule) ? (
            <Checkbox
              label="Several windows at once"
              isChecked={rule['windows'] !== undefined}
              onChange={(isSeveral) => onChange(withSeveralWindows(rule, isSeveral))}
            />
          ) : null}
        </fieldset>
        <RollOut rule={rule} problemAt={problemAt} set={set} />
        <details class={classes.more} open={hasDetails(rule)}>
          <summary>More: cost, regions, schedule, penalty, failures</summary>
          <Details rule={rule} problemAt={problemAt} set={set} />
        </details>
      </div>
    </Card>
  )
}

interface SummaryProps {
  readonly rule: LooseRule
  readonly isValid: boolean
  readonly problem: string | undefined
}

/** The rule in plain words, while it is edited. */
function Summary({ rule, isValid, problem }: SummaryProps): JSX.Element {
  const sentences = isValid ? describeRule(rule as unknown as PolicyRule) : []
  return (
    <div class={classes.summary} data-valid={isValid} aria-live="polite">
      {isValid ? (
        <>
          <strong>{sentences[0]}</strong> {sentences.slice(1).join(' ')}
        </>
      ) : (
        (problem ?? 'Something below is not right yet.')
      )}
    </div>
  )
}

interface PartProps {
  readonly rule: LooseRule
  readonly problemAt: (name: string) => string | undefined
  readonly set: (name: string, value: unknown) => void
}

function WhoAndWhat({ rule, problemAt, set }: PartProps): JSX.Element {
  const dimension = fieldText(rule['dimension'])
  const known = DIMENSIONS.find(({ value }) => value === dimension)
  return (
    <fieldset class={classes.group}>
      <legend>Who and what</legend>
      <div class={classes.fields}>
        <TextInput
          label="Resource"
          isCode
          hint="/orders, /orders/:id, /files/*, or * for all."
          value={fieldText(rule['resource'])}
          problem={problemAt('resource')}
          onInput={(text) => set('resource', text)}
        />
        <Select
          label="Counts"
          value={known?.value ?? ''}
          choices={DIMENSIONS}
          onChange={(value) => set('dimension', value === '' ? 'descriptor' : value)}
        />
        {known === undefined || known.value === '' ? (
          <TextInput
            label="Dimension"
            isCode
            hint="A descriptor, or several joined by +."
            value={dimension}
            problem={problemAt('dimension')}
            onInput={(text) => set('dimension', text)}
          />
        ) : null}
      </div>
      <Methods rule={rule} set={set} />
    </fieldset>
  )
}

/** No method is chosen: the rule is for all. */
function Methods({ rule, set }: Pick<PartProps, 'rule' | 'set'>): JSX.Element {
  const chosen = Array.isArray(rule['methods']) ? rule['methods'].map(String) : []
  const all = [...new Set([...METHODS, ...chosen])]
  return (
    <fieldset class={classes.methods} aria-label="Methods. None means all.">
      {all.map((method) => (
        <button
          key={method}
          type="button"
          class={classes.method}
          aria-pressed={chosen.includes(method)}
          onClick={() => {
            const next = chosen.includes(method) ? chosen.filter((other) => other !== method) : [...chosen, method]
            set('methods', next.length === 0 ? undefined : next)
          }}
        >
          {method}
        </button>
      ))}
      <span class={classes.muted}>{chosen.length === 0 ? 'all methods' : ''}</span>
    </fieldset>
  )
}

function RollOut({ rule, problemAt, set }: PartProps): JSX.Element {
  return (
    <fieldset class={classes.group}>
      <legend>Rollout</legend>
      <div class={classes.checks}>
        <Checkbox
          label="Shadow: measure, never deny"
          isChecked={rule['shadow'] === true}
          onChange={(isChecked) => set('shadow', isChecked ? true : undefined)}
        />
        <Checkbox
          label="Enabled"
          isChecked={rule['enabled'] !== false}
          onChange={(isChecked) => set('enabled', isChecked ? undefined : false)}
        />
        <Checkbox
          label="Applies beside other rules, replaces none"
          isChecked={rule['always'] === true}
          onChange={(isChecked) => set('always', isChecked ? true : undefined)}
        />
      </div>
      <div class={classes.fields}>
        <TextInput
          label="Share of callers in percent"
          placeholder="100"
          value={fieldText(rule['percent'])}
          problem={problemAt('percent')}
          onInput={(text) => set('percent', typedValue('amount', text))}
        />
        <TextInput
          label="Name"
          isCode
          placeholder="resource@dimension"
          value={fieldText(rule['name'])}
          problem={problemAt('name')}
          onInput={(text) => set('name', text === '' ? undefined : text)}
        />
      </div>
    </fieldset>
  )
}

/** Options that are edited as YAML, with an example of each. */
const YAML_OPTIONS = [
  { name: 'schedule', label: 'Schedule', example: '- { from: "22:00", to: "06:00", multiplier: 2 }' },
  { name: 'regions', label: 'Regions', example: 'US: 2\nDE: 0.5' },
  { name: 'penalty', label: 'Penalty', example: 'after: 10\nwithin: 1m\nblock: 5m' },
  {
    name: 'errorRate',
    label: 'Cut while calls fail',
    example: 'cutAbove: 0.2\nrestoreBelow: 0.05\nwindow: 30s\nleastCalls: 50\nstep: 0.5\nleast: 0.1\nhold: 10s',
  },
] as const

function hasDetails(rule: LooseRule): boolean {
  return [...YAML_OPTIONS.map(({ name }) => name), 'cost', 'incident', 'failureMode'].some((name) => name in rule)
}

function Details({ rule, problemAt, set }: PartProps): JSX.Element {
  return (
    <div class={classes.group}>
      <div class={classes.fields}>
        <TextInput
          label="Units that a call takes"
          placeholder="1"
          value={fieldText(rule['cost'])}
          problem={problemAt('cost')}
          disabled={typeof rule['cost'] === 'object'}
          onInput={(text) => set('cost', typedValue('amount', text))}
        />
        <TextInput
          label="Multiplier during an incident"
          placeholder="1"
          value={fieldText(rule['incident'])}
          problem={problemAt('incident')}
          onInput={(text) => set('incident', typedValue('amount', text))}
        />
        <Select
          label="While the store is unavailable"
          value={fieldText(rule['failureMode'])}
          choices={FAILURE_CHOICES}
          onChange={(mode) => set('failureMode', mode === '' ? undefined : mode)}
        />
      </div>
      <div class={classes.fields}>
        {YAML_OPTIONS.map(({ name, label, example }) => (
          <YamlField
            key={name}
            label={label}
            example={example}
            value={rule[name]}
            problem={problemAt(name)}
            onChange={(value) => set(name, value)}
          />
        ))}
      </div>
    </div>
  )
}
