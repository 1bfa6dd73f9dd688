import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import { mayCall } from '../../../api/session.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import { instantText } from '../../../ui/theme/format.ts'
import { Comparison } from './comparison.tsx'
import type { EnforcedRules } from './enforced-rules.ts'
import { GhostChart } from './ghost-chart.tsx'
import type { VersionAction } from './version-action-dialog.tsx'
import { VersionActionDialog } from './version-action-dialog.tsx'
import classes from './versions.module.css'
import { StageBadge } from './versions-tab.tsx'

export interface CandidateCardProps {
  readonly rules: EnforcedRules
  readonly candidate: Version
  readonly onChange: () => void
}

/** The version that is measured or enforced for a share: what it changes, and the way on or back. */
export function CandidateCard({ rules, candidate, onChange }: CandidateCardProps): JSX.Element {
  const action = useSignal<VersionAction | undefined>(undefined)
  const button = (kind: VersionAction['kind'], label: string): JSX.Element => (
    <Button
      kind={kind === 'enforce' ? 'primary' : 'normal'}
      onClick={() => {
        action.value = { kind, version: candidate }
      }}
    >
      {label}
    </Button>
  )
  return (
    <Card
      title={
        <>
          Version {candidate.number} <StageBadge version={candidate} />
        </>
      }
      description={`By ${candidate.createdBy}, ${instantText(candidate.createdAt)}. ${candidate.note ?? ''}`}
      actions={
        mayCall('stageVersion') ? (
          <span class={classes.actions}>
            {button('retired', 'Retire')}
            {button('percent', candidate.stage === 'percent' ? 'Change share' : 'Enforce for a share')}
            {button('enforce', 'Enforce')}
          </span>
        ) : undefined
      }
    >
      <div class={classes.candidate}>
        <Comparison from={rules.number} to={candidate.number} />
        <GhostChart version={candidate.number} />
      </div>
      <VersionActionDialog
        action={action.value}
        enforced={rules.number}
        onClose={() => {
          action.value = undefined
        }}
        onDone={onChange}
      />
    </Card>
  )
}
