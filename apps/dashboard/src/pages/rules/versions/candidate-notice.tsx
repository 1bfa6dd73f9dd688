import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import { Button } from '../../../ui/controls/button.tsx'
import { Notice } from '../../../ui/feedback/states.tsx'
import { navigate } from '../../../ui/navigation/router.ts'
import { countText, percentText } from '../../../ui/theme/format.ts'
import { useShadowSeries } from './ghost-chart.tsx'
import { StageBadge } from './versions-tab.tsx'

/** Says in a line which version is on its way and what it would deny, and leads to it. */
export function CandidateNotice({ candidate }: { candidate: Version }): JSX.Element {
  const series = useShadowSeries(candidate.number).state.value.value
  const sum = (counts: readonly number[] = []): number => counts.reduce((total, count) => total + count, 0)
  const [measured, wouldDeny] = [sum(series?.shadowChecks), sum(series?.shadowDenials)]
  return (
    <Notice
      icon="overview"
      action={<Button onClick={() => navigate('/rules?tab=versions')}>Compare and decide</Button>}
    >
      <strong>Version {candidate.number}</strong> <StageBadge version={candidate} />{' '}
      {measured === 0
        ? 'No call was measured with it in the last 15 minutes.'
        : `would also deny ${countText(wouldDeny)} of ${countText(measured)} calls of the last 15 minutes ` +
          `(${percentText(wouldDeny / measured)}).`}
    </Notice>
  )
}
