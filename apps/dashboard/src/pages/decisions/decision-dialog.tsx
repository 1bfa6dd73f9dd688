import type { DecisionRecord } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { LoadedView, Notice } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { durationText, instantText } from '../../ui/theme/format.ts'
import { countedCaller, explainPath, usagePath } from '../callers/caller.ts'
import { ExplanationView } from '../explain/explanation-view.tsx'
import { countedText } from './decision-list.ts'
import classes from './decisions.module.css'

export interface DecisionDialogProps {
  /** Undefined closes the dialog. */
  readonly decision: DecisionRecord | undefined
  readonly onClose: () => void
}

/** A decision as it was made, and how the same call is decided now. */
export function DecisionDialog({ decision, onClose }: DecisionDialogProps): JSX.Element {
  return (
    <Dialog title="Why this decision" isOpen={decision !== undefined} onClose={onClose} isWide>
      {decision === undefined ? null : <Explained decision={decision} />}
    </Dialog>
  )
}

function Explained({ decision }: { decision: DecisionRecord }): JSX.Element {
  const query = useQuery(decision.id, (signal) => call('explainDecision', { parameters: { id: decision.id }, signal }))
  const caller = countedCaller(decision)
  const usage = caller === undefined ? undefined : usagePath(caller)
  return (
    <div class={classes.explained}>
      <p>
        <Badge tone={decision.allowed ? 'good' : 'denied'}>{decision.allowed ? 'allowed' : 'denied'}</Badge>{' '}
        {instantText(decision.at)} by version {decision.version} on node {decision.node}:{' '}
        <code>
          {decision.method} {decision.resource}
        </code>{' '}
        counted for {countedText(decision)}
        {decision.retryAfterMs === undefined ? '' : `, again after ${durationText(decision.retryAfterMs)}`}.
      </p>
      <p class={classes.links}>
        <Link to={explainPath(decision.request)}>Open in Explain</Link>
        {usage === undefined ? null : <Link to={usage}>All counters of this caller</Link>}
      </p>
      <LoadedView state={query.state} onRetry={() => void query.reload()}>
        {({ explanation, unknown }) => (
          <>
            {unknown.length === 0 ? null : (
              <Notice icon="lock">
                This node does not know {unknown.join(' and ')} of the call: secrets do not leave the node that decided.
                Rules that count them are not explained.
              </Notice>
            )}
            <p class={classes.muted}>How the same call is decided now:</p>
            <ExplanationView explanation={explanation} />
          </>
        )}
      </LoadedView>
    </div>
  )
}
