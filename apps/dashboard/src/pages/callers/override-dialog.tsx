import { useSignal } from '@preact/signals'
import type { Override } from '@sluice/contract'
import type { JSX } from 'preact'
import { type ApiError, asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Button } from '../../ui/controls/button.tsx'
import { Segments, Select, TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice } from '../../ui/feedback/states.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showToast } from '../../ui/overlay/toast.tsx'
import type { Caller } from './caller.ts'
import { callerText } from './caller.ts'
import classes from './callers.module.css'

const EXPIRIES = [
  { value: '3600000', label: 'for an hour' },
  { value: '86400000', label: 'for a day' },
  { value: '604800000', label: 'for a week' },
  { value: '', label: 'until it is removed' },
] as const

export interface OverrideDialogProps {
  /** Who gets other numbers; undefined closes the dialog. */
  readonly caller: Caller | undefined
  /** The resource of the rule, as it writes it; `*` for every rule of the dimension. */
  readonly resource: string
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** Sets other numbers for one caller. */
export function OverrideDialog({ caller, resource, onClose, onDone }: OverrideDialogProps): JSX.Element {
  const kind = useSignal<'multiplier' | 'limit' | 'off'>('multiplier')
  const amount = useSignal('2')
  const window = useSignal('')
  const where = useSignal<'rule' | 'all'>('rule')
  const expiry = useSignal<(typeof EXPIRIES)[number]['value']>('86400000')
  const error = useSignal<ApiError | undefined>(undefined)
  const close = (): void => {
    error.value = undefined
    onClose()
  }
  const save = async (): Promise<void> => {
    if (caller === undefined) return
    const terms = termsOf(kind.value, amount.value, window.value)
    const body: Override = {
      ...caller,
      resource: where.value === 'all' ? '*' : resource,
      terms,
      ...(expiry.value === '' ? {} : { expiresAt: nowMs() + Number(expiry.value) }),
    }
    try {
      await call('putOverride', { body })
      showToast(`The override for ${callerText(caller)} holds on all nodes within a second.`)
      close()
      onDone?.()
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  return (
    <Dialog
      title={caller === undefined ? 'Override' : `Override for ${callerText(caller)}`}
      isOpen={caller !== undefined}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" onClick={() => void save()}>
            Set override
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        <Segments
          label="Kind of override"
          value={kind.value}
          choices={[
            { value: 'multiplier', label: 'Multiply the limit' },
            { value: 'limit', label: 'Another limit' },
            { value: 'off', label: 'No limit' },
          ]}
          onChange={(value) => {
            kind.value = value
          }}
        />
        {kind.value === 'off' ? null : (
          <div class={classes.pair}>
            <TextInput
              label={kind.value === 'multiplier' ? 'Multiplier' : 'Limit'}
              value={amount.value}
              onInput={(text) => {
                amount.value = text
              }}
            />
            {kind.value === 'limit' ? (
              <TextInput
                label="Window"
                hint="Empty keeps that of the rule."
                placeholder="1m"
                value={window.value}
                onInput={(text) => {
                  window.value = text
                }}
              />
            ) : null}
          </div>
        )}
        <div class={classes.pair}>
          <Select
            label="Holds for"
            value={where.value}
            choices={[
              { value: 'rule', label: resource === '*' ? 'rules for all resources' : `rules for ${resource}` },
              { value: 'all', label: 'every rule of the dimension' },
            ]}
            onChange={(value) => {
              where.value = value
            }}
          />
          <Select
            label="Holds"
            value={expiry.value}
            choices={EXPIRIES}
            onChange={(value) => {
              expiry.value = value
            }}
          />
        </div>
      </div>
    </Dialog>
  )
}

/** A text that is no number is sent as it is: the service says what it expected. */
function termsOf(kind: 'multiplier' | 'limit' | 'off', amount: string, window: string): Override['terms'] {
  const value = amount.trim() === '' || Number.isNaN(Number(amount)) ? (amount as unknown as number) : Number(amount)
  if (kind === 'off') return { limit: 'off' }
  if (kind === 'multiplier') return { multiplier: value }
  return window.trim() === '' ? { limit: value } : { limit: value, window: window.trim() }
}
