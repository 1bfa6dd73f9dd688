import { useSignal } from '@preact/signals'
import type { ApiKey, IssuedApiKey } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { currentRole, mayCall } from '../../api/session.ts'
import { nowMs } from '../../clock-and-timers.ts'
import type { Tone } from '../../ui/controls/badge.tsx'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { LoadedView, ReadOnlyNotice } from '../../ui/feedback/states.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { instantText } from '../../ui/theme/format.ts'
import { MoreButton, usePages } from '../lists/paged-list.tsx'
import classes from './api-keys.module.css'
import { IssuedKeyDialog, NewKeyDialog, RevokeDialog, RotateDialog } from './key-dialogs.tsx'

const ROLE_TONES: Readonly<Record<ApiKey['role'], Tone>> = {
  admin: 'danger',
  editor: 'accent',
  viewer: 'good',
  none: 'neutral',
}

/** Who may use the admin API and the dashboard. */
export function ApiKeysPage(): JSX.Element {
  if (!mayCall('listApiKeys')) {
    return (
      <Page title="API keys">
        <ReadOnlyNotice needed="admin" role={currentRole()} />
      </Page>
    )
  }
  return <KeyList />
}

function KeyList(): JSX.Element {
  const list = usePages('keys', (page, signal) => call('listApiKeys', { parameters: page, signal }))
  const reload = (): void => void list.query.reload()
  const isCreating = useSignal(false)
  const rotating = useSignal<ApiKey | undefined>(undefined)
  const revoking = useSignal<ApiKey | undefined>(undefined)
  const issued = useSignal<IssuedApiKey | undefined>(undefined)
  const show = (key: IssuedApiKey): void => {
    issued.value = key
    reload()
  }
  return (
    <Page
      title="API keys"
      description="Keys are shown once and stored as hashes. Sessions of a key end when it is revoked."
      actions={
        <Button
          kind="primary"
          icon="plus"
          onClick={() => {
            isCreating.value = true
          }}
        >
          New key
        </Button>
      }
    >
      <Card isFlush>
        <LoadedView state={list.query.state} onRetry={reload}>
          {(page) => (
            <>
              <Table
                caption="API keys"
                columns={columnsFor({
                  onRotate: (key) => {
                    rotating.value = key
                  },
                  onRevoke: (key) => {
                    revoking.value = key
                  },
                })}
                rows={page.items}
                rowKey={({ id }) => id}
              />
              <MoreButton page={page} onMore={list.more} />
            </>
          )}
        </LoadedView>
      </Card>
      <NewKeyDialog
        isOpen={isCreating.value}
        onClose={() => {
          isCreating.value = false
        }}
        onIssued={show}
      />
      <RotateDialog
        apiKey={rotating.value}
        onClose={() => {
          rotating.value = undefined
        }}
        onIssued={show}
      />
      <RevokeDialog
        apiKey={revoking.value}
        onClose={() => {
          revoking.value = undefined
        }}
        onDone={reload}
      />
      <IssuedKeyDialog
        issued={issued.value}
        onClose={() => {
          issued.value = undefined
        }}
      />
    </Page>
  )
}

interface KeyActions {
  readonly onRotate: (key: ApiKey) => void
  readonly onRevoke: (key: ApiKey) => void
}

function columnsFor({ onRotate, onRevoke }: KeyActions): readonly Column<ApiKey>[] {
  return [
    { id: 'name', header: 'Name', cell: ({ name }) => <b>{name}</b>, sortValue: ({ name }) => name },
    { id: 'id', isSecondary: true, header: 'Visible part', isCode: true, cell: ({ id }) => id },
    { id: 'role', header: 'Role', cell: ({ role }) => <Badge tone={ROLE_TONES[role]}>{role}</Badge> },
    { id: 'tenant', isSecondary: true, header: 'Tenant', cell: ({ tenant }) => tenant ?? '' },
    { id: 'tier', isSecondary: true, header: 'Tier', cell: ({ tier }) => tier ?? '' },
    {
      id: 'created',
      header: 'Created',
      cell: ({ createdAt }) => instantText(createdAt),
      sortValue: ({ createdAt }) => createdAt,
    },
    { id: 'state', header: 'State', cell: (key) => <KeyState apiKey={key} /> },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (key) =>
        hasEnded(key) ? null : (
          <span class={classes.actions}>
            <Button kind="quiet" onClick={() => onRotate(key)}>
              Rotate
            </Button>
            <Button kind="quiet" onClick={() => onRevoke(key)}>
              Revoke
            </Button>
          </span>
        ),
    },
  ]
}

function hasEnded({ revokedAt, expiresAt }: ApiKey): boolean {
  return revokedAt !== undefined || (expiresAt !== undefined && expiresAt <= nowMs())
}

function KeyState({ apiKey }: { apiKey: ApiKey }): JSX.Element {
  const { revokedAt, expiresAt } = apiKey
  if (revokedAt !== undefined) return <Badge>revoked {instantText(revokedAt)}</Badge>
  if (expiresAt === undefined) return <Badge tone="good">valid</Badge>
  return expiresAt <= nowMs() ? (
    <Badge>expired {instantText(expiresAt)}</Badge>
  ) : (
    <Badge tone="warning">until {instantText(expiresAt)}</Badge>
  )
}
