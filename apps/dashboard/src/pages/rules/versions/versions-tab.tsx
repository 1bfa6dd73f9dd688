import { useSignal } from '@preact/signals'
import type { Version, VersionStage } from '@sluice/contract'
import type { JSX } from 'preact'
import { mayCall } from '../../../api/session.ts'
import type { Tone } from '../../../ui/controls/badge.tsx'
import { Badge } from '../../../ui/controls/badge.tsx'
import { Button } from '../../../ui/controls/button.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { Column } from '../../../ui/table/table.tsx'
import { Table } from '../../../ui/table/table.tsx'
import { instantText } from '../../../ui/theme/format.ts'
import { Comparison } from './comparison.tsx'
import type { EnforcedRules } from './enforced-rules.ts'
import type { VersionAction } from './version-action-dialog.tsx'
import { VersionActionDialog } from './version-action-dialog.tsx'
import classes from './versions.module.css'

const STAGE_TONES: Readonly<Record<VersionStage, Tone>> = {
  draft: 'neutral',
  shadow: 'warning',
  percent: 'accent',
  enforce: 'good',
  retired: 'neutral',
}

export interface VersionsTabProps {
  readonly rules: EnforcedRules
  readonly onChange: () => void
  /** Opens a version in the editor. */
  readonly onEdit: (version: Version) => void
}

/** Every version of the rule set, and the way from one to the other. */
export function VersionsTab({ rules, onChange, onEdit }: VersionsTabProps): JSX.Element {
  const action = useSignal<VersionAction | undefined>(undefined)
  const compared = useSignal<Version | undefined>(undefined)
  const columns: readonly Column<Version>[] = [
    { id: 'number', header: 'Version', cell: ({ number }) => <b>{number}</b>, sortValue: ({ number }) => number },
    { id: 'stage', header: 'Stage', sharesLine: true, cell: (version) => <StageBadge version={version} /> },
    { id: 'by', isSecondary: true, header: 'By', cell: ({ createdBy }) => createdBy },
    { id: 'at', header: 'Made', cell: ({ createdAt }) => instantText(createdAt) },
    { id: 'basedOn', isSecondary: true, header: 'Based on', align: 'end', cell: ({ basedOn }) => basedOn ?? '' },
    { id: 'note', header: 'Note', wraps: true, cell: ({ note }) => note ?? '' },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (version) => (
        <VersionButtons
          version={version}
          enforced={rules.number}
          onCompare={() => {
            compared.value = version
          }}
          onEdit={() => onEdit(version)}
          onAction={(kind) => {
            action.value = { kind, version }
          }}
        />
      ),
    },
  ]
  return (
    <Card
      isFlush
      title="Versions"
      description="Draft, shadow, a share of the callers, all of them: and back in one step."
    >
      <Table
        caption="Versions of the rule set, newest first"
        columns={columns}
        rows={rules.versions}
        rowKey={({ number }) => number}
      />
      <VersionActionDialog
        action={action.value}
        enforced={rules.number}
        onClose={() => {
          action.value = undefined
        }}
        onDone={onChange}
      />
      <Dialog
        title={`Version ${compared.value?.number} against version ${rules.number}`}
        isOpen={compared.value !== undefined}
        isWide
        onClose={() => {
          compared.value = undefined
        }}
      >
        {compared.value === undefined ? null : <Comparison from={rules.number} to={compared.value.number} />}
      </Dialog>
    </Card>
  )
}

/** Where a version stands. */
export function StageBadge({ version }: { version: Pick<Version, 'stage' | 'percent'> }): JSX.Element {
  const { stage, percent } = version
  const text = stage === 'percent' ? `${percent}% of callers` : stage
  return <Badge tone={STAGE_TONES[stage]}>{text === 'enforce' ? 'enforced' : text}</Badge>
}

interface VersionButtonsProps {
  readonly version: Version
  /** Number of the enforced version. */
  readonly enforced: number
  readonly onCompare: () => void
  readonly onEdit: () => void
  readonly onAction: (kind: VersionAction['kind']) => void
}

function VersionButtons({ version, enforced, onCompare, onEdit, onAction }: VersionButtonsProps): JSX.Element {
  const { number, stage, enforcedAt } = version
  const isOnItsWay = stage === 'draft' || stage === 'shadow' || stage === 'percent'
  const button = (kind: VersionAction['kind'], label: string): JSX.Element => (
    <Button kind="quiet" onClick={() => onAction(kind)}>
      {label}
    </Button>
  )
  return (
    <span class={classes.actions}>
      {number === enforced || enforced === 0 ? null : (
        <Button kind="quiet" onClick={onCompare}>
          Compare
        </Button>
      )}
      {number === enforced || !mayCall('createVersion') ? null : (
        <Button kind="quiet" onClick={onEdit}>
          Edit
        </Button>
      )}
      {mayCall('stageVersion') && isOnItsWay ? (
        <>
          {stage === 'shadow' ? null : button('shadow', 'Shadow')}
          {button('percent', 'Percent')}
          {button('enforce', 'Enforce')}
          {button('retired', 'Retire')}
        </>
      ) : null}
      {mayCall('rollbackVersion') && stage === 'retired' && enforcedAt !== undefined
        ? button('rollback', number < enforced ? 'Roll back' : 'Restore')
        : null}
    </span>
  )
}
