import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { ChangeList } from './change-list.tsx'

/** What changes from one version to another. */
export function Comparison({ from, to }: { from: number; to: number }): JSX.Element {
  const diff = useQuery(`${from} ${to}`, (signal) => call('diffVersions', { parameters: { number: from, to }, signal }))
  return (
    <LoadedView state={diff.state} onRetry={() => void diff.reload()}>
      {({ changes }) => <ChangeList changes={changes} />}
    </LoadedView>
  )
}
