import type { JSX } from 'preact'
import { Page } from '../../ui/shell/page.tsx'
import { TimeRangePicker } from '../../ui/shell/time-range.tsx'

/** What happens now, on all nodes or one. */
export function OverviewPage(): JSX.Element {
  return (
    <Page title="Overview" actions={<TimeRangePicker />}>
      {null}
    </Page>
  )
}
