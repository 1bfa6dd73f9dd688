import { useSignal } from '@preact/signals'
import type { ApiKey, ApiKeyRole, IssuedApiKey } from '@sluice/contract'
import type { JSX } from 'preact'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Button } from '../../ui/controls/button.tsx'
import { Select, TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice, Notice } from '../../ui/feedback/states.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { showFailure, showToast } from '../../ui/overlay/toast.tsx'
import { attempt } from '../lists/paged-list.tsx'
import classes from './api-keys.module.css'

const ROLES: readonly { readonly value: ApiKeyRole; readonly label: string }[] = [
  { value: 'viewer', label: 'viewer: sees everything' },
  { value: 'editor', label: 'editor: changes rules and callers' },
  { value: 'admin', label: 'admin: everything, also keys and exemptions' },
  { value: 'none', label: 'none: a caller that is limited' },
]

const EXPIRIES = [
  { value: '2592000000', label: 'in 30 days' },
  { value: '7776000000', label: 'in 90 days' },
  { value: '31536000000', label: 'in a year' },
  { value: '', label: 'never' },
] as const

const OVERLAPS = [
  { value: '0', label: 'ends at once' },
  { value: '3600000', label: 'stays valid for an hour' },
  { value: '86400000', label: 'stays valid for a day' },
  { value: '604800000', label: 'stays valid for a week' },
] as const

export interface NewKeyDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onIssued: (key: IssuedApiKey) => void
}

/** Makes a key. */
export function NewKeyDialog({ isOpen, onClose, onIssued }: NewKeyDialogProps): JSX.Element {
  const name = useSignal('')
  const role = useSignal<ApiKeyRole>('viewer')
  const tenant = useSignal('')
  const expiry = useSignal<(typeof EXPIRIES)[number]['value']>('7776000000')
  const error = useSignal<ApiError | undefined>(undefined)
  const create = async (): Promise<void> => {
    const body = {
      name: name.value.trim(),
      role: role.value,
      ...(tenant.value.trim() === '' ? {} : { tenant: tenant.value.trim() }),
      ...(expiry.value === '' ? {} : { expiresAt: nowMs() + Number(expiry.value) }),
    }
    try {
      const issued = await call('createApiKey', { body })
      error.value = undefined
      name.value = ''
      onClose()
      onIssued(issued)
    } catch (cause) {
      error.value = asApiError(cause)
    }
  }
  return (
    <Dialog
      title="New API key"
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={name.value.trim() === ''} onClick={() => void create()}>
            Create key
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        {error.value === undefined ? null : <ErrorNotice error={error.value} />}
        <TextInput
          label="Name"
          hint="Stands in the audit log: a person or a program."
          value={name.value}
          onInput={(text) => {
            name.value = text
          }}
        />
        <Select
          label="Role"
          value={role.value}
          choices={ROLES}
          onChange={(value) => {
            role.value = value
          }}
        />
        <div class={classes.pair}>
          <Select
            label="Expires"
            value={expiry.value}
            choices={EXPIRIES}
            onChange={(value) => {
              expiry.value = value
            }}
          />
          <TextInput
            label="Only for tenant"
            placeholder="all tenants"
            value={tenant.value}
            onInput={(text) => {
              tenant.value = text
            }}
          />
        </div>
      </div>
    </Dialog>
  )
}

export interface RotateDialogProps {
  /** Undefined closes the dialog. */
  readonly apiKey: ApiKey | undefined
  readonly onClose: () => void
  readonly onIssued: (key: IssuedApiKey) => void
}

/** Makes a new key in the place of one. */
export function RotateDialog({ apiKey, onClose, onIssued }: RotateDialogProps): JSX.Element {
  const overlap = useSignal<(typeof OVERLAPS)[number]['value']>('86400000')
  const rotate = async (): Promise<void> => {
    if (apiKey === undefined) return
    try {
      const body = { overlapMs: Number(overlap.value) }
      const issued = await call('rotateApiKey', { parameters: { id: apiKey.id }, body })
      onClose()
      onIssued(issued)
    } catch (cause) {
      showFailure(cause)
    }
  }
  return (
    <Dialog
      title={`Rotate ${apiKey?.name ?? ''}`}
      isOpen={apiKey !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={() => void rotate()}>
            Rotate key
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <p>A new key with the same name and role is made.</p>
        <Select
          label={`The old key ${apiKey?.id ?? ''}`}
          value={overlap.value}
          choices={OVERLAPS}
          onChange={(value) => {
            overlap.value = value
          }}
        />
      </div>
    </Dialog>
  )
}

export interface RevokeDialogProps {
  /** Undefined closes the dialog. */
  readonly apiKey: ApiKey | undefined
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Ends a key. */
export function RevokeDialog({ apiKey, onClose, onDone }: RevokeDialogProps): JSX.Element {
  const revoke = async (): Promise<void> => {
    if (apiKey === undefined) return
    const parameters = { id: apiKey.id }
    if (!(await attempt(() => call('revokeApiKey', { parameters }), `${apiKey.name} has ended.`))) return
    onClose()
    onDone()
  }
  return (
    <Dialog
      title={`Revoke ${apiKey?.name ?? ''}`}
      isOpen={apiKey !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" onClick={() => void revoke()}>
            Revoke key
          </Button>
        </>
      }
    >
      <p>
        The key <code>{apiKey?.id}</code> stops working at once, and its sessions end on all nodes within seconds. This
        cannot be undone.
      </p>
    </Dialog>
  )
}

export interface IssuedKeyDialogProps {
  /** Undefined closes the dialog. */
  readonly issued: IssuedApiKey | undefined
  readonly onClose: () => void
}

/** Shows a key, once. It is in the memory of this page only. */
export function IssuedKeyDialog({ issued, onClose }: IssuedKeyDialogProps): JSX.Element {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(issued?.token ?? '')
      showToast('The key was copied.')
    } catch (error) {
      showFailure(error)
    }
  }
  return (
    <Dialog
      title={`Key of ${issued?.apiKey.name ?? ''}`}
      isOpen={issued !== undefined}
      onClose={onClose}
      actions={
        <>
          <Button icon="copy" onClick={() => void copy()}>
            Copy
          </Button>
          <Button kind="primary" onClick={onClose}>
            I saved it
          </Button>
        </>
      }
    >
      <div class={classes.form}>
        <Notice tone="warning">This is the only time that the key is shown. Only a hash of it is kept.</Notice>
        <code class={classes.token}>{issued?.token}</code>
      </div>
    </Dialog>
  )
}
