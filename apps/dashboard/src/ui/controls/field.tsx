import type { ComponentChildren, JSX } from 'preact'
import { useId } from 'preact/hooks'
import classes from './controls.module.css'

interface FieldProps {
  readonly label: string
  /** Hides the label from sight, where the place says what the field is. */
  readonly isLabelHidden?: boolean
  readonly hint?: ComponentChildren
  /** What is wrong with the value: received, expected. */
  readonly problem?: string | undefined
}

interface FieldIds {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean | undefined
}

/** A label, a control, and what is said about it below. */
function Field(props: FieldProps & { readonly children: (ids: FieldIds) => JSX.Element }): JSX.Element {
  const id = useId()
  const { label, isLabelHidden, hint, problem } = props
  const noteId = `${id}-note`
  const hasNote = hint !== undefined || problem !== undefined
  return (
    <div class={classes.field}>
      <label class={isLabelHidden ? 'visually-hidden' : classes.label} for={id}>
        {label}
      </label>
      {props.children({
        id,
        'aria-describedby': hasNote ? noteId : undefined,
        'aria-invalid': problem === undefined ? undefined : true,
      })}
      {hasNote ? (
        <div id={noteId} class={problem === undefined ? classes.hint : classes.problem} aria-live="polite">
          {problem ?? hint}
        </div>
      ) : null}
    </div>
  )
}

export interface TextInputProps extends FieldProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: 'text' | 'password' | 'search' | 'number'
  readonly placeholder?: string
  readonly isCode?: boolean
  readonly disabled?: boolean
  readonly required?: boolean
  readonly autoComplete?: 'off' | 'current-password'
  readonly autoFocus?: boolean
}

/** A field for one line of text. */
export function TextInput(props: TextInputProps): JSX.Element {
  const { value, onInput, type = 'text', placeholder, isCode, disabled, required, autoComplete = 'off' } = props
  return (
    <Field {...props}>
      {(ids) => (
        <input
          {...ids}
          ref={props.autoFocus ? focusOnce : null}
          class={`${classes.input} ${isCode ? classes.code : ''}`}
          type={type as 'text'}
          {...{ value, placeholder, disabled, required, autoComplete }}
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

const focused = new WeakSet<HTMLElement>()

function focusOnce(element: HTMLInputElement | null): void {
  if (element === null || focused.has(element)) return
  focused.add(element)
  element.focus()
}

export interface TextAreaProps extends FieldProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly rows?: number
  readonly isCode?: boolean
  readonly disabled?: boolean
  readonly placeholder?: string
}

/** A field for several lines of text. */
export function TextArea(props: TextAreaProps): JSX.Element {
  const { value, onInput, rows = 5, isCode, disabled, placeholder } = props
  return (
    <Field {...props}>
      {(ids) => (
        <textarea
          {...ids}
          class={`${classes.input} ${isCode ? classes.code : ''}`}
          {...{ value, rows, disabled, placeholder }}
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** One choice of a select or of segments. */
export interface Choice<Value extends string> {
  readonly value: Value
  readonly label: string
}

export interface SelectProps<Value extends string> extends FieldProps {
  readonly value: Value
  readonly choices: readonly Choice<Value>[]
  readonly onChange: (value: Value) => void
  readonly disabled?: boolean
}

/** A choice of one from many. */
export function Select<Value extends string>(props: SelectProps<Value>): JSX.Element {
  const { value, choices, onChange, disabled } = props
  return (
    <Field {...props}>
      {(ids) => (
        <select
          {...ids}
          class={`${classes.input} ${classes.select}`}
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.currentTarget.value as Value)}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export interface CheckboxProps {
  readonly label: ComponentChildren
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
  readonly disabled?: boolean
}

/** A yes or no. */
export function Checkbox({ label, isChecked, onChange, disabled }: CheckboxProps): JSX.Element {
  return (
    <label class={classes.checkbox}>
      <input
        type="checkbox"
        checked={isChecked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}

export interface SegmentsProps<Value extends string> {
  /** What is chosen, for screen readers. */
  readonly label: string
  readonly value: Value
  readonly choices: readonly Choice<Value>[]
  readonly onChange: (value: Value) => void
}

/** A choice of one from few, all of them in sight. */
export function Segments<Value extends string>({ label, value, choices, onChange }: SegmentsProps<Value>): JSX.Element {
  return (
    <fieldset class={classes.segments} aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          class={classes.segment}
          aria-pressed={choice.value === value}
          onClick={() => onChange(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </fieldset>
  )
}
