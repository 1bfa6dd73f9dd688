import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { Button } from '../../../ui/controls/button.tsx'
import { TextInput } from '../../../ui/controls/field.tsx'
import { queryParameter, setQuery } from '../../../ui/navigation/router.ts'
import { showFailure, showToast } from '../../../ui/overlay/toast.tsx'
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

/** Does something, and says how it went. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work()
    showToast(done)
    return true
  } catch (error) {
    showFailure(error)
    return false
  }
}

/** Fetches pages one after the other. */
export function MoreButton({ next, onMore }: { next: string | undefined; onMore: () => void }): JSX.Element | null {
  return next === undefined ? null : (
    <div class={classes.more}>
      <Button onClick={onMore}>Show more</Button>
    </div>
  )
}
