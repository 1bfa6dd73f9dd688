import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { TextArea } from '../../../ui/controls/field.tsx'
import { readYaml, YamlError } from '../document/yaml-reader.ts'
import { writeYaml } from '../document/yaml-writer.ts'

export interface YamlFieldProps {
  readonly label: string
  /** Shown where nothing is written. */
  readonly example: string
  readonly value: unknown
  readonly problem: string | undefined
  /** Undefined when the field is empty. */
  readonly onChange: (value: unknown) => void
}

/** A part of a rule that has a form of its own, as YAML. A text that cannot be read leaves the value as it was. */
export function YamlField({ label, example, value, problem, onChange }: YamlFieldProps): JSX.Element {
  const typed = useSignal<string | undefined>(undefined)
  const unreadable = useSignal<string | undefined>(undefined)
  const written = value === undefined ? '' : writeYaml(value).trimEnd()
  return (
    <TextArea
      label={label}
      isCode
      rows={4}
      placeholder={example}
      value={typed.value ?? written}
      problem={unreadable.value ?? problem}
      onInput={(text) => {
        typed.value = text
        try {
          const read = text.trim() === '' ? undefined : readYaml(text).value
          unreadable.value = undefined
          onChange(read ?? undefined)
        } catch (error) {
          if (!(error instanceof YamlError)) throw error
          unreadable.value = `Line ${error.line}: ${error.message}`
        }
      }}
    />
  )
}
