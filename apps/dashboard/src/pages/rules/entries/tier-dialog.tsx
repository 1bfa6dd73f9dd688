import { useSignal } from '@preact/signals'
import type { Tier } from '@sluice/core/policy'
import type { JSX } from 'preact'
import type { ApiError } from '../../../api/api-error.ts'
import { asApiError } from '../../../api/api-error.ts'
import { call } from '../../../api/client.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { Checkbox, TextInput } from '../../../ui/controls/field.tsx'
import { ErrorNotice, Notice } from '../../../ui/feedback/states.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { showToast } from '../../../ui/overlay/toast.tsx'
import classes from './entries.module.css'

export interface PartDialogProps {
  /** Number of the enforced version that the page shows: a change of another one is rejected. */
  readonly version: number
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Adds or changes a tier. Its own rules stay: they are edited with the other rules. */
export function TierDialog({
  tier,
  version,
  onClose,
  onDone,
}: PartDialogProps & { tier: Partial<Tier> | undefined }): JSX.Element {
  const name = useSignal(tier?.name ?? '')
  const multiplier = useSignal(numberText(tier?.multiplier))
  const burst = useSignal(numberText(tier?.burst))
  const entitled = useSignal(tier?.entitled ?? false)
  const error = useSignal<ApiError | undefined>(undefined)
  const save = async (): Promise<void> => {
    const body = {
      ...(tier?.rules === undefined ? {} : { rules: tier.rules }),
      ...(multiplier.value === '' ? {} : { multiplier: numberIn(multiplier.value) }),
      ...(burst.value === '' ? {} : { burst: numberIn(burst.value) }),
      ...(entitled.value ? { entitled: true } : {}),
    }
    try {
      await call('putTier', { parameters: { name: name.value.trim() }, body, ifMatch: `"${version}"` })
      showToast(`Tier ${name.value} holds on all nodes within a second.`)
      onClose()
      onDone()
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  return (
    <Dialog
      title={tier?.name === undefined ? 'New tier' : `Tier ${tier.name}`}
      isOpen={tier !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={() => void save()}>
            Save tier
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        {error.value === undefined ? null : <PartError error={error.value} />}
        <TextInput
          label="Name"
          disabled={tier?.name !== undefined}
          value={name.value}
          onInput={(text) => {
            name.value = text
          }}
        />
        <div class={classes.pair}>
          <TextInput
            label="Multiplies limits by"
            placeholder="1"
            value={multiplier.value}
            onInput={(text) => {
              multiplier.value = text
            }}
          />
          <TextInput
            label="Calls at once on top"
            placeholder="0"
            value={burst.value}
            onInput={(text) => {
              burst.value = text
            }}
          />
        </div>
        <Checkbox
          label="May use the bursts of hybrid rules"
          isChecked={entitled.value}
          onChange={(isChecked) => {
            entitled.value = isChecked
          }}
        />
      </div>
    </Dialog>
  )
}

/** An error of a change of a part; for a conflict of two editors it says what to do. */
export function PartError({ error }: { error: ApiError }): JSX.Element {
  return (
    <>
      <ErrorNotice error={error} />
      {error.isConflict ? (
        <Notice tone="warning">
          Somebody else published a version meanwhile. Nothing of yours was saved. Close this, look at what changed, and
          save again.
        </Notice>
      ) : null}
    </>
  )
}

/** The number that a field holds, or its text: the service says what it expected. */
function numberIn(text: string): number {
  return text.trim() === '' || Number.isNaN(Number(text)) ? (text as unknown as number) : Number(text)
}

function numberText(value: number | undefined): string {
  return value === undefined ? '' : String(value)
}
