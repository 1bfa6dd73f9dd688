import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice } from '../../ui/feedback/states.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showToast } from '../../ui/overlay/toast.tsx'
import type { Caller } from './caller.ts'
import { callerText } from './caller.ts'
import classes from './callers.module.css'

export interface CallerDialogProps {
  /** Who is meant; undefined closes the dialog. */
  readonly caller: Caller | undefined
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** Denies all requests of a caller for a time. */
export function BlockDialog({ caller, onClose, onDone }: CallerDialogProps): JSX.Element {
  const duration = useSignal('1h')
  const reason = useSignal('')
  const error = useSignal<ApiError | undefined>(undefined)
  // The next caller needs a new confirmation.
  const close = (): void => {
    reason.value = ''
    error.value = undefined
    onClose()
  }
  const block = async (): Promise<void> => {
    if (caller === undefined) return
    try {
      const why = reason.value.trim()
      await call('putBlock', { body: { ...caller, duration: duration.value.trim(), ...(why && { reason: why }) } })
      showToast(`${callerText(caller)} is blocked for ${duration.value}.`)
      close()
      onDone?.()
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  return (
    <Dialog
      title={caller === undefined ? 'Block' : `Block ${callerText(caller)}`}
      isOpen={caller !== undefined}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" icon="block" onClick={() => void block()}>
            Block
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <p>Every request of this caller is denied until the time is over or the block is lifted.</p>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        <TextInput
          label="For how long"
          hint="A duration such as 15m, 1h or 7d."
          value={duration.value}
          onInput={(text) => {
            duration.value = text
          }}
        />
        <TextInput
          label="Reason"
          hint="Stands in the list of blocks and in the audit log."
          value={reason.value}
          onInput={(text) => {
            reason.value = text
          }}
        />
      </div>
    </Dialog>
  )
}
