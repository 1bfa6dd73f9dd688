import { CALENDAR_PERIODS } from '@sluice/core/internal'
import type { RuleSetProblem } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { Button } from '../../../ui/controls/button.tsx'
import { Checkbox, Select, TextInput } from '../../../ui/controls/field.tsx'
import { problemText } from '../document/rule-document.ts'
import classes from './editor.module.css'
import type { RuleField } from './rule-fields.ts'
import { fieldText, typedValue } from './rule-fields.ts'

type Problems = ReadonlyMap<string, RuleSetProblem>
type Entry = Readonly<Record<string, unknown>>

export interface OptionFieldProps {
  readonly field: RuleField
  readonly value: unknown
  /** By the path within the rule. */
  readonly problems: Problems
  readonly onChange: (value: unknown) => void
}

const HINTS: Readonly<Record<string, string>> = {
  units: '0 denies all, off does not limit.',
  bucketUnits: 'Calls at once. 0 denies all, off does not limit.',
  duration: 'Such as 250ms, 10s, 1m, 1h30m.',
  amount: 'The most calls at one instant.',
  segments: 'Parts that are counted, in constant memory.',
}

/** A field for one option of an algorithm, by the kind of its value. */
export function OptionField({ field, value, problems, onChange }: OptionFieldProps): JSX.Element {
  const { name, label, kind } = field
  const problem = textAt(problems, `/${name}`)
  switch (kind) {
    case 'flag':
      return (
        <Checkbox label={label} isChecked={value === true} onChange={(isChecked) => onChange(isChecked || undefined)} />
      )
    case 'windows':
    case 'calendarWindows':
      return <Windows value={value} problems={problems} onChange={onChange} />
    case 'burstBucket':
      return <BurstBucket value={value} problems={problems} onChange={onChange} />
    case 'durationOrCalendar':
      return <WindowOrCalendar label={label} value={value} problem={problem} onChange={onChange} />
    default:
      return (
        <TextInput
          label={label}
          hint={HINTS[kind]}
          value={fieldText(value)}
          problem={problem}
          onInput={(text) => onChange(typedValue(kind, text))}
        />
      )
  }
}

function textAt(problems: Problems, path: string): string | undefined {
  const found = problems.get(path)
  return found === undefined ? undefined : problemText(found)
}

interface WindowOrCalendarProps {
  readonly label: string
  readonly value: unknown
  readonly problem: string | undefined
  readonly onChange: (value: unknown) => void
}

/** A length, or a period of the calendar. */
function WindowOrCalendar({ label, value, problem, onChange }: WindowOrCalendarProps): JSX.Element {
  const calendar = typeof value === 'object' && value !== null ? (value as Entry) : undefined
  return (
    <>
      <Select
        label={label}
        value={fieldText(calendar?.['calendar'])}
        choices={[
          { value: '', label: 'a length of time' },
          ...CALENDAR_PERIODS.map((period) => ({ value: period as string, label: `the calendar ${period}` })),
        ]}
        onChange={(period) => onChange(period === '' ? '1m' : { ...calendar, calendar: period })}
      />
      {calendar === undefined ? (
        <TextInput
          label={`${label} length`}
          hint={HINTS['duration']}
          value={fieldText(value)}
          problem={problem}
          onInput={(text) => onChange(typedValue('duration', text))}
        />
      ) : (
        <TextInput
          label="Time zone"
          placeholder="UTC"
          value={fieldText(calendar['timeZone'])}
          problem={problem}
          onInput={(text) => {
            const { timeZone: _old, ...others } = calendar
            onChange(text === '' ? others : { ...others, timeZone: text })
          }}
        />
      )}
    </>
  )
}

interface PartFieldProps {
  readonly value: unknown
  readonly problems: Problems
  readonly onChange: (value: unknown) => void
}

function BurstBucket({ value, problems, onChange }: PartFieldProps): JSX.Element {
  const bucket = (typeof value === 'object' && value !== null ? value : {}) as Entry
  const input = (name: string, label: string): JSX.Element => (
    <TextInput
      label={label}
      value={fieldText(bucket[name])}
      problem={textAt(problems, `/burst/${name}`)}
      onInput={(text) => onChange({ ...bucket, [name]: typedValue('amount', text) })}
    />
  )
  return (
    <>
      {input('capacity', 'Burst capacity')}
      {input('refillPerSecond', 'Burst refill per second')}
    </>
  )
}

/** Several windows, decided together. */
function Windows({ value, problems, onChange }: PartFieldProps): JSX.Element {
  const entries = (Array.isArray(value) ? value : []) as readonly Entry[]
  const set = (index: number, name: string, text: string): void => {
    const { [name]: _old, ...others } = entries[index]!
    const typed = typedValue(name === 'window' ? 'duration' : 'amount', text)
    onChange(entries.with(index, typed === undefined ? others : { ...entries[index], [name]: typed }))
  }
  const input = (index: number, name: string, label: string): JSX.Element => (
    <TextInput
      label={`${label} ${index + 1}`}
      value={fieldText(entries[index]![name])}
      problem={textAt(problems, `/windows/${index}/${name}`)}
      onInput={(text) => set(index, name, text)}
    />
  )
  return (
    <div class={classes.windows}>
      {entries.map((_, index) => (
        <div key={index} class={classes.windowRow}>
          {input(index, 'limit', 'Limit')}
          {input(index, 'window', 'Window')}
          {input(index, 'burst', 'Burst')}
          <Button
            kind="quiet"
            icon="close"
            label={`Remove window ${index + 1}`}
            disabled={entries.length === 1}
            onClick={() => onChange(entries.toSpliced(index, 1))}
          />
        </div>
      ))}
      <Button kind="quiet" icon="plus" onClick={() => onChange([...entries, { limit: 1000, window: '1h' }])}>
        Add a window
      </Button>
      {problems.has('/windows') ? <p class={classes.problem}>{textAt(problems, '/windows')}</p> : null}
    </div>
  )
}
