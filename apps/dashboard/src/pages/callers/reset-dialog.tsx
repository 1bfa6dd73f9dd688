import { useSignal } from '@preact/signals'
import type { Calls } from '@sluice/contract'
import type { JSX } from 'preact'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { Button } from '../../ui/controls/button.tsx'
import { Segments, TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice } from '../../ui/feedback/states.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showToast } from '../../ui/overlay/toast.tsx'
import classes from './callers.module.css'

/** Whose counters start anew. */
export type ResetTarget = Omit<Calls['reset']['body'], 'units' | 'note'>

export interface ResetDialogProps {
  /** Undefined closes the dialog. */
  readonly target: ResetTarget | undefined
  /** Who that is, in words. */
  readonly name: string
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** Forgets what a caller has used, or gives some of it back. */
export function ResetDialog({ target, name, onClose, onDone }: ResetDialogProps): JSX.Element {
  const kind = useSignal<'all' | 'some'>('all')
  const units = useSignal('1')
  const note = useSignal('')
  const error = useSignal<ApiError | undefined>(undefined)
  // The next caller needs a new confirmation.
  const close = (): void => {
    kind.value = 'all'
    note.value = ''
    error.value = undefined
    onClose()
  }
  const reset = async (): Promise<void> => {
    if (target === undefined) return
    try {
      const why = note.value.trim()
      const given = kind.value === 'all' ? {} : { units: Number(units.value) }
      const { count } = await call('reset', { body: { ...target, ...given, ...(why && { note: why }) } })
      const effect = kind.value === 'all' ? 'starts anew' : 'got units back'
      showToast(count === 1 ? `One counter ${effect}.` : `${count} counters: each ${effect}.`)
      close()
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
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" onClick={() => void reset()}>
            {kind.value === 'all' ? 'Reset counters' : 'Refund'}
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <Segments
          label="How much"
          value={kind.value}
          choices={[
            { value: 'all', label: 'Reset: give back all' },
            { value: 'some', label: 'Refund some units' },
          ]}
          onChange={(value) => {
            kind.value = value
          }}
        />
        {kind.value === 'some' ? (
          <TextInput
            label="Units"
            hint="Those used last come back first; never more than were used."
            value={units.value}
            onInput={(text) => {
              units.value = text
            }}
          />
        ) : null}
        <p>
          {kind.value === 'all'
            ? `What ${name} has used ${where} is given back, and counting starts anew.`
            : `${name} gets units back ${where}. Slots and turns in a queue stay.`}
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
