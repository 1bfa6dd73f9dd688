import { useSignal } from '@preact/signals'
import type { Calls } from '@sluice/contract'
import type { JSX } from 'preact'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice } from '../../ui/feedback/states.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showToast } from '../../ui/overlay/toast.tsx'
import classes from './callers.module.css'

/** Whose counters start anew. */
export type ResetTarget = Omit<Calls['reset']['body'], 'note'>

export interface ResetDialogProps {
  /** Undefined closes the dialog. */
  readonly target: ResetTarget | undefined
  /** Who that is, in words. */
  readonly name: string
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** Forgets what a caller has used. */
export function ResetDialog({ target, name, onClose, onDone }: ResetDialogProps): JSX.Element {
  const note = useSignal('')
  const error = useSignal<ApiError | undefined>(undefined)
  const reset = async (): Promise<void> => {
    if (target === undefined) return
    try {
      const why = note.value.trim()
      const { count } = await call('reset', { body: { ...target, ...(why && { note: why }) } })
      showToast(count === 1 ? 'One counter starts anew.' : `${count} counters start anew.`)
      error.value = undefined
      onClose()
      onDone?.()
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  const where = target?.resource === undefined ? 'under every rule' : `under the rules for ${target.resource}`
  return (
    <Dialog
      title={`Reset counters of ${name}`}
      isOpen={target !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={() => void reset()}>
            Reset counters
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <p>
          What {name} has used {where} is given back, and counting starts anew.
        </p>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        <TextInput
          label="Note"
          hint="Stands in the audit log."
          value={note.value}
          onInput={(text) => {
            note.value = text
          }}
        />
      </div>
    </Dialog>
  )
}
