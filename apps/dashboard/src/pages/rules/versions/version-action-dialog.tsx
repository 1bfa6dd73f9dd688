import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import type { ApiError } from '../../../api/api-error.ts'
import { asApiError } from '../../../api/api-error.ts'
import { call } from '../../../api/client.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { TextInput } from '../../../ui/controls/field.tsx'
import { ErrorNotice, Notice } from '../../../ui/feedback/states.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { showToast } from '../../../ui/overlay/toast.tsx'
import { Comparison } from './comparison.tsx'
import classes from './versions.module.css'

/** What is to become of a version. */
export interface VersionAction {
  readonly kind: 'shadow' | 'percent' | 'enforce' | 'retired' | 'rollback'
  readonly version: Version
}

const TEXTS: Readonly<
  Record<VersionAction['kind'], { readonly title: string; readonly effect: string; readonly button: string }>
> = {
  shadow: {
    title: 'Measure version',
    effect: 'It decides nothing. You see what it would have denied.',
    button: 'Start shadow',
  },
  percent: {
    title: 'Enforce for a share of callers:',
    effect: 'A caller always belongs to the same share. The others keep the enforced version.',
    button: 'Enforce for this share',
  },
  enforce: { title: 'Enforce version', effect: 'It holds for all callers within a second.', button: 'Enforce' },
  retired: { title: 'Retire version', effect: 'It is no longer measured or enforced.', button: 'Retire' },
  rollback: {
    title: 'Roll back to version',
    effect: 'It is enforced again, in one step. Counters go on.',
    button: 'Roll back',
  },
}

export interface VersionActionDialogProps {
  /** Undefined closes the dialog. */
  readonly action: VersionAction | undefined
  /** Number of the enforced version that is on the page. */
  readonly enforced: number
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Asks before a version changes its stage, with what changes. */
export function VersionActionDialog({ action, enforced, onClose, onDone }: VersionActionDialogProps): JSX.Element {
  const percent = useSignal('10')
  const note = useSignal('')
  const error = useSignal<ApiError | undefined>(undefined)
  const close = (): void => {
    error.value = undefined
    onClose()
  }
  const confirm = async (): Promise<void> => {
    if (action === undefined) return
    try {
      await move(action, { enforced, percent: Number(percent.value), note: note.value.trim() })
      showToast(`Version ${action.version.number}: done.`)
      close()
      onDone()
    } catch (cause) {
      error.value = asApiError(cause)
      // Somebody else may have moved it: what is on the page is read again.
      if (error.value.isConflict) onDone()
    }
  }
  if (action === undefined)
    return (
      <Dialog title="Version" isOpen={false} onClose={close}>
        {null}
      </Dialog>
    )
  const { title, effect, button } = textsOf(action, enforced)
  return (
    <Dialog
      title={`${title} ${action.version.number}`}
      isOpen
      isWide
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" onClick={() => void confirm()}>
            {button}
          </Button>
        </>
      }
    >
      <div class={classes.dialogForm}>
        <p>{effect}</p>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        {error.value?.isConflict === true ? (
          <Notice tone="warning">
            Nothing was changed. The list below the dialog shows how the versions stand now. If another version was
            enforced meanwhile, edit this one to put its changes on top.
          </Notice>
        ) : null}
        {action.kind === 'percent' ? (
          <TextInput
            label="Share of callers in percent"
            value={percent.value}
            onInput={(text) => {
              percent.value = text
            }}
          />
        ) : null}
        <TextInput
          label="Note"
          hint="Stands in the audit log."
          value={note.value}
          onInput={(text) => {
            note.value = text
          }}
        />
        {enforced === 0 || enforced === action.version.number ? null : (
          <>
            <h3>What it changes against version {enforced}</h3>
            <Comparison from={enforced} to={action.version.number} />
          </>
        )}
      </div>
    </Dialog>
  )
}

function textsOf({ kind, version }: VersionAction, enforced: number): (typeof TEXTS)[VersionAction['kind']] {
  const isNewer = kind === 'rollback' && version.number > enforced
  return isNewer ? { ...TEXTS.rollback, title: 'Restore version', button: 'Restore' } : TEXTS[kind]
}

interface MoveOptions {
  readonly enforced: number
  readonly percent: number
  readonly note: string
}

/** Moves a version, unless somebody moved it since it was read. */
async function move({ kind, version }: VersionAction, { enforced, percent, note }: MoveOptions): Promise<void> {
  const why = note === '' ? {} : { note }
  if (kind === 'rollback') {
    await call('rollbackVersion', { body: { to: version.number, ...why }, ifMatch: `"${enforced}"` })
    return
  }
  const body = kind === 'percent' ? { stage: kind, percent, ...why } : { stage: kind, ...why }
  const parameters = { number: version.number }
  await call('stageVersion', { parameters, body, ifMatch: `"${version.revision}"` })
}
