import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import type { ApiError } from '../../../api/api-error.ts'
import { asApiError } from '../../../api/api-error.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { Segments, TextInput } from '../../../ui/controls/field.tsx'
import { ErrorNotice } from '../../../ui/feedback/states.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { showToast } from '../../../ui/overlay/toast.tsx'
import type { RuleDocument } from '../document/rule-document.ts'
import type { Change } from '../versions/change-list.tsx'
import { ChangeList } from '../versions/change-list.tsx'
import classes from './editor.module.css'
import type { PublishStage } from './publish.ts'
import { publish } from './publish.ts'

const STAGES: readonly { readonly value: PublishStage; readonly label: string }[] = [
  { value: 'enforce', label: 'Enforce' },
  { value: 'percent', label: 'Percent' },
  { value: 'shadow', label: 'Shadow' },
  { value: 'draft', label: 'Draft' },
]

const EFFECTS: Readonly<Record<PublishStage, string>> = {
  enforce: 'It holds for all callers on every node within a second. A rollback undoes it.',
  percent: 'It holds for a share of the callers, always the same ones.',
  shadow: 'It decides nothing. You see what it would have denied, over live traffic.',
  draft: 'It is kept without effect, for somebody to look at.',
}

const DONE: Readonly<Record<PublishStage, string>> = {
  enforce: 'is enforced',
  percent: 'is enforced for a share of the callers',
  shadow: 'is measured',
  draft: 'is kept as a draft',
}

export interface PublishDialogProps {
  /** Undefined closes the dialog. */
  readonly document: RuleDocument | undefined
  readonly changes: readonly Change[]
  readonly onClose: () => void
  readonly onPublished: (version: Version) => void
  /** Somebody else published meanwhile. */
  readonly onConflict: () => void
}

/** Shows what changes, and asks how far it is to go. */
export function PublishDialog({
  document,
  changes,
  onClose,
  onPublished,
  onConflict,
}: PublishDialogProps): JSX.Element {
  const stage = useSignal<PublishStage>('enforce')
  const percent = useSignal('10')
  const note = useSignal('')
  const error = useSignal<ApiError | undefined>(undefined)
  const isBusy = useSignal(false)
  const confirm = async (): Promise<void> => {
    if (document === undefined) return
    isBusy.value = true
    try {
      const options = { stage: stage.value, percent: Number(percent.value), note: note.value }
      const result = await publish(document, options)
      error.value = undefined
      if (result.kind === 'conflict') onConflict()
      else {
        showToast(`Version ${result.version.number} ${DONE[stage.value]}.`)
        onPublished(result.version)
      }
    } catch (cause) {
      error.value = asApiError(cause)
    }
    isBusy.value = false
  }
  return (
    <Dialog
      title="Publish"
      isOpen={document !== undefined}
      isWide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" isBusy={isBusy.value} onClick={() => void confirm()}>
            {stage.value === 'draft' ? 'Keep as draft' : 'Publish'}
          </Button>
        </>
      }
    >
      <div class={classes.dialog}>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        <div class={classes.stage}>
          <Segments
            label="Stage"
            value={stage.value}
            choices={STAGES}
            onChange={(value) => {
              stage.value = value
            }}
          />
          <span class={classes.muted}>{EFFECTS[stage.value]}</span>
        </div>
        {stage.value === 'percent' ? (
          <TextInput
            label="Share of callers in percent"
            value={percent.value}
            onInput={(text) => {
              percent.value = text
            }}
          />
        ) : null}
        <TextInput
          label="Why"
          hint="Stands with the version and in the audit log."
          value={note.value}
          onInput={(text) => {
            note.value = text
          }}
        />
        <h3>What changes</h3>
        <ChangeList changes={changes} />
      </div>
    </Dialog>
  )
}
