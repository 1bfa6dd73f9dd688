import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { Checkbox, Segments, TextInput } from '../../ui/controls/field.tsx'
import { ALGORITHM_TEXTS } from './algorithm-texts.ts'
import classes from './playground.module.css'
import type { NumberFieldName, Scenario, Shape } from './scenario.ts'
import { ALGORITHMS, NUMBER_FIELDS, parseNumber, parseWindow } from './scenario.ts'

const SHAPE_CHOICES: readonly { readonly value: Shape; readonly label: string }[] = [
  { value: 'boundary', label: 'Boundary' },
  { value: 'burst', label: 'Bursts' },
  { value: 'steady', label: 'Steady' },
  { value: 'drawn', label: 'Drawn' },
]

const SHAPE_HINTS: Readonly<Record<Shape, string>> = {
  boundary: 'An attacker calls just before a window ends, and again right after.',
  burst: 'Some calls all the time, and a burst in the middle of each window.',
  steady: 'Calls at an even pace.',
  drawn: 'Draw over the traffic chart.',
}

export interface ScenarioFormProps {
  readonly scenario: Scenario
  readonly onChange: (change: Partial<Scenario>) => void
}

/** The numbers, the traffic and the algorithms of a scenario. */
export function ScenarioForm({ scenario, onChange }: ScenarioFormProps): JSX.Element {
  const { shape, algorithms } = scenario
  const number = (name: NumberFieldName, label: string): JSX.Element => (
    <NumberInput name={name} label={label} value={scenario[name]} onChange={(value) => onChange({ [name]: value })} />
  )
  return (
    <div class={classes.form}>
      <fieldset class={classes.group}>
        <legend>Limit</legend>
        <div class={classes.pair}>
          {number('limit', 'Calls')}
          <WindowInput value={scenario.window} onChange={(window) => onChange({ window })} />
        </div>
        {number('burst', 'Burst, for buckets and GCRA')}
        {algorithms.includes('concurrency') ? number('holdMs', 'Duration of a call in ms') : null}
      </fieldset>
      <fieldset class={classes.group}>
        <legend>Traffic</legend>
        <Segments
          label="Shape of the traffic"
          value={shape}
          choices={SHAPE_CHOICES}
          onChange={(value) => onChange({ shape: value })}
        />
        <p class={classes.hint}>{SHAPE_HINTS[shape]}</p>
        <div class={classes.pair}>
          {shape === 'steady' || shape === 'burst' ? number('rate', 'Calls per second') : null}
          {shape === 'burst' ? number('size', 'Calls in a burst') : null}
          {shape === 'boundary' ? number('size', 'Calls on each side') : null}
        </div>
      </fieldset>
      <fieldset class={classes.group}>
        <legend>Algorithms</legend>
        <div class={classes.algorithms}>
          {ALGORITHMS.map((name) => (
            <Checkbox
              key={name}
              label={ALGORITHM_TEXTS[name].label}
              isChecked={algorithms.includes(name)}
              disabled={algorithms.length === 1 && algorithms.includes(name)}
              onChange={(isChecked) =>
                onChange({
                  algorithms: ALGORITHMS.filter((other) => (other === name ? isChecked : algorithms.includes(other))),
                })
              }
            />
          ))}
        </div>
      </fieldset>
    </div>
  )
}

interface NumberInputProps {
  readonly name: NumberFieldName
  readonly label: string
  readonly value: number
  readonly onChange: (value: number) => void
}

/** A number that may be wrong while it is typed. */
function NumberInput({ name, label, value, onChange }: NumberInputProps): JSX.Element {
  const typed = useSignal<string | undefined>(undefined)
  const bounds = NUMBER_FIELDS[name]
  const isWrong = typed.value !== undefined && parseNumber(typed.value, bounds) === undefined
  return (
    <TextInput
      label={label}
      value={typed.value ?? String(value)}
      problem={
        isWrong
          ? `Expected ${bounds.isWhole ? 'a whole number' : 'a number'} from ${bounds.least} to ${bounds.most}.`
          : undefined
      }
      onInput={(text) => {
        const parsed = parseNumber(text, bounds)
        typed.value = parsed === undefined || String(parsed) !== text ? text : undefined
        if (parsed !== undefined) onChange(parsed)
      }}
    />
  )
}

function WindowInput({ value, onChange }: { value: string; onChange: (value: string) => void }): JSX.Element {
  const typed = useSignal<string | undefined>(undefined)
  return (
    <TextInput
      label="In each window of"
      value={typed.value ?? value}
      problem={typed.value === undefined ? undefined : 'Expected a duration from 100ms to 1h, such as 10s.'}
      onInput={(text) => {
        const parsed = parseWindow(text)
        typed.value = parsed === undefined ? text : undefined
        if (parsed !== undefined) onChange(parsed)
      }}
    />
  )
}
