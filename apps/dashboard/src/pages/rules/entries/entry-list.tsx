import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { Button } from '../../../ui/controls/button.tsx'
import { TextInput } from '../../../ui/controls/field.tsx'
import { queryParameter, setQuery } from '../../../ui/navigation/router.ts'
import classes from './entries.module.css'

/** Finds the entries of one caller, whose dimension and name stand in the URL. */
export function CallerSearch(): JSX.Element {
  const dimension = useSignal(queryParameter('dimension') ?? '')
  const entity = useSignal(queryParameter('entity') ?? '')
  return (
    <form
      class={classes.search}
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ dimension: dimension.value.trim(), entity: entity.value.trim() })
      }}
    >
      <TextInput
        label="Dimension"
        isLabelHidden
        placeholder="Dimension"
        value={dimension.value}
        onInput={(text) => {
          dimension.value = text
        }}
      />
      <TextInput
        label="Caller"
        isLabelHidden
        placeholder="Caller"
        value={entity.value}
        onInput={(text) => {
          entity.value = text
        }}
      />
      <Button type="submit">Find</Button>
    </form>
  )
}

/** The filter that {@link CallerSearch} put into the URL. An entity alone says nothing: it needs its dimension. */
export function callerFilter(): { readonly dimension?: string; readonly entity?: string } {
  const dimension = queryParameter('dimension')
  const entity = queryParameter('entity')
  if (dimension === undefined) return {}
  return entity === undefined ? { dimension } : { dimension, entity }
}
