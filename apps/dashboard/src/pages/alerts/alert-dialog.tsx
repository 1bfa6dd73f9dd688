import { useSignal } from '@preact/signals'
import type { Alert } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { attempt } from '../lists/paged-list.tsx'
import classes from './alerts.module.css'

/** What is done about an alert. */
export interface AlertAction {
  readonly kind: 'acknowledge' | 'silence'
  readonly alert: Alert
}

export interface AlertDialogProps {
  /** Undefined closes the dialog. */
  readonly action: AlertAction | undefined
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Says that somebody looks after an alert, or keeps it quiet for a time. */
export function AlertDialog({ action, onClose, onDone }: AlertDialogProps): JSX.Element {
  const duration = useSignal('1h')
  const note = useSignal('')
  const isSilence = action?.kind === 'silence'
  const confirm = async (): Promise<void> => {
    if (action === undefined) return
    const why = note.value.trim() === '' ? {} : { note: note.value.trim() }
    const parameters = { id: action.alert.id }
    const done = await attempt(
      () =>
        isSilence
          ? call('silenceAlert', { parameters, body: { duration: duration.value.trim(), ...why } })
          : call('acknowledgeAlert', { parameters, body: why }),
      isSilence ? `It is silent for ${duration.value}.` : 'Everybody sees that you look after it.',
    )
    if (!done) return
    onClose()
    onDone()
  }
  return (
    <Dialog
      title={`${isSilence ? 'Silence' : 'Acknowledge'} ${action?.alert.rule ?? ''}`}
      isOpen={action !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={() => void confirm()}>
            {isSilence ? 'Silence' : 'Acknowledge'}
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <p>
          {isSilence
            ? 'It is listed as before, and not sent until the time is over.'
            : 'It is not sent again while it goes on.'}
        </p>
        {isSilence ? (
          <TextInput
            label="For how long"
            hint="A duration such as 15m, 1h or 1d."
            value={duration.value}
            onInput={(text) => {
              duration.value = text
            }}
          />
        ) : null}
        <TextInput
          label="Note"
          hint="Others see it with the alert."
          value={note.value}
          onInput={(text) => {
            note.value = text
          }}
        />
      </div>
    </Dialog>
  )
}
