import { useSignal } from '@preact/signals'
import type { DenyEntry, Exemption, RequestMatch } from '@sluice/core/policy'
import type { JSX } from 'preact'
import type { ApiError } from '../../../api/api-error.ts'
import { asApiError } from '../../../api/api-error.ts'
import { call } from '../../../api/client.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { TextInput } from '../../../ui/controls/field.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { showToast } from '../../../ui/overlay/toast.tsx'
import classes from './entries.module.css'
import type { PartDialogProps } from './tier-dialog.tsx'
import { PartError } from './tier-dialog.tsx'

type MatchedEntry = Partial<Exemption> & Partial<DenyEntry>

export interface MatchDialogProps extends PartDialogProps {
  readonly kind: 'exemption' | 'deny'
  /** Undefined closes the dialog. */
  readonly entry: MatchedEntry | undefined
}

const FIELDS: readonly { readonly name: keyof RequestMatch; readonly label: string; readonly hint: string }[] = [
  { name: 'resource', label: 'Resource', hint: 'Such as /health or /internal/*.' },
  { name: 'methods', label: 'Methods', hint: 'Separated by commas; empty for all.' },
  { name: 'cidrs', label: 'Addresses', hint: 'Such as 10.0.0.0/8, 192.0.2.7.' },
  { name: 'services', label: 'Internal services', hint: 'Separated by commas.' },
  { name: 'dimension', label: 'Dimension', hint: 'With callers: user, tenant, apiKey, or a descriptor.' },
  { name: 'entities', label: 'Callers', hint: 'Separated by commas.' },
]

const LISTS: readonly string[] = ['methods', 'cidrs', 'services', 'entities']

/** Adds or changes an exemption or an entry of the deny list: which requests are meant. */
export function MatchDialog({ kind, entry, version, onClose, onDone }: MatchDialogProps): JSX.Element {
  const name = useSignal(entry?.name ?? '')
  const texts = useSignal<Readonly<Record<string, string>>>(textsOf(entry?.match))
  const error = useSignal<ApiError | undefined>(undefined)
  const noun = kind === 'exemption' ? 'exemption' : 'entry of the deny list'
  const save = async (): Promise<void> => {
    const parameters = { name: name.value.trim() }
    const match = matchOf(texts.value)
    const ifMatch = `"${version}"`
    try {
      if (kind === 'exemption') {
        const rules = entry?.rules === undefined ? {} : { rules: entry.rules }
        await call('putExemption', { parameters, body: { match, ...rules }, ifMatch })
      } else {
        const expiresAt = entry?.expiresAt === undefined ? {} : { expiresAt: entry.expiresAt }
        await call('putDenyEntry', { parameters, body: { match, ...expiresAt }, ifMatch })
      }
      showToast('It holds on all nodes within a second.')
      onClose()
      onDone()
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  return (
    <Dialog
      title={entry?.name === undefined ? `New ${noun}` : `${kind === 'exemption' ? 'Exemption' : 'Deny'} ${entry.name}`}
      isOpen={entry !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={() => void save()}>
            Save
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        {error.value === undefined ? null : <PartError error={error.value} />}
        <TextInput
          label="Name"
          disabled={entry?.name !== undefined}
          value={name.value}
          onInput={(text) => {
            name.value = text
          }}
        />
        <p>Every part that is given must hold.</p>
        <div class={classes.pair}>
          {FIELDS.map((field) => (
            <TextInput
              key={field.name}
              label={field.label}
              hint={field.hint}
              value={texts.value[field.name] ?? ''}
              onInput={(text) => {
                texts.value = { ...texts.value, [field.name]: text }
              }}
            />
          ))}
        </div>
      </div>
    </Dialog>
  )
}

/** A match as the texts of fields. */
export function textsOf(match: RequestMatch | undefined): Readonly<Record<string, string>> {
  const parts = Object.entries(match ?? {})
  return Object.fromEntries(
    parts.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)]),
  )
}

/** The match that the texts of fields say; empty ones are no part of it. */
export function matchOf(texts: Readonly<Record<string, string>>): RequestMatch {
  const parts = Object.entries(texts).flatMap(([name, text]) => {
    const trimmed = text.trim()
    if (trimmed === '') return []
    const items = trimmed.split(',').map((item) => item.trim())
    return [[name, LISTS.includes(name) ? items.filter((item) => item !== '') : trimmed]]
  })
  return Object.fromEntries(parts) as RequestMatch
}
