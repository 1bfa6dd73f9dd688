import type { NodeStatus } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { LoadedView, Notice } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { agoText, compactText, durationText, NO_VALUE, percentText } from '../../ui/theme/format.ts'

const REFRESH_MS = 2000

/** A configuration that was not confirmed for so long is worth a look. */
const OLD_CONFIG_MS = 60_000

/** Every node of the deployment, and how it stands. */
export function NodesPage(): JSX.Element {
  const nodes = useQuery('nodes', (signal) => call('nodes', { signal }), { periodMs: REFRESH_MS })
  return (
    <Page title="Nodes" description="Every process of the service that decides, read every 2 seconds.">
      <LoadedView state={nodes.state} onRetry={() => void nodes.reload()}>
        {(answer) => (
          <>
            {answer.problem === undefined ? null : (
              <Notice tone="warning">
                <strong>The figures of other nodes cannot be read.</strong> {answer.problem}
              </Notice>
            )}
            {answer.isShared ? null : (
              <Notice icon="nodes">
                Nodes see each other with REDIS_URL or DATABASE_URL. Without, each is on its own.
              </Notice>
            )}
            <Card isFlush title={answer.nodes.length === 1 ? '1 node' : `${answer.nodes.length} nodes`}>
              <Table
                caption="Nodes of the deployment"
                columns={columnsFor(newestVersion(answer.nodes))}
                rows={answer.nodes}
                rowKey={({ id }) => id}
              />
            </Card>
          </>
        )}
      </LoadedView>
    </Page>
  )
}

function newestVersion(nodes: readonly NodeStatus[]): number {
  return Math.max(0, ...nodes.filter(({ isLost }) => !isLost).map(({ configVersion }) => configVersion))
}

function columnsFor(newest: number): readonly Column<NodeStatus>[] {
  return [
    {
      id: 'name',
      header: 'Node',
      cell: ({ name, id, isSelf, isLost }) => (
        <>
          <Link to={`/?node=${encodeURIComponent(id)}`} title="Figures of this node only">
            {name}
          </Link>{' '}
          {isSelf ? <Badge tone="accent">answers this page</Badge> : null}
          {isLost ? <Badge tone="danger">lost</Badge> : null}
        </>
      ),
      sortValue: ({ name }) => name,
    },
    {
      id: 'region',
      isSecondary: true,
      header: 'Region',
      cell: ({ region }) => region ?? NO_VALUE,
      sortValue: ({ region }) => region ?? '',
    },
    {
      id: 'config',
      header: 'Rules',
      cell: ({ configVersion, configLagMs }) => (
        <>
          version {configVersion} {configVersion < newest ? <Badge tone="warning">behind</Badge> : null}
          {configLagMs > OLD_CONFIG_MS ? <Badge tone="danger">confirmed {durationText(configLagMs)} ago</Badge> : null}
        </>
      ),
      sortValue: ({ configVersion }) => configVersion,
    },
    {
      id: 'checks',
      header: 'Checks/s',
      align: 'end',
      cell: ({ checksPerSecond }) => compactText(checksPerSecond),
      sortValue: ({ checksPerSecond }) => checksPerSecond,
    },
    {
      id: 'denied',
      header: 'Denied',
      align: 'end',
      cell: ({ checksPerSecond, denialsPerSecond }) =>
        checksPerSecond === 0 ? NO_VALUE : percentText(denialsPerSecond / checksPerSecond),
      sortValue: ({ denialsPerSecond }) => denialsPerSecond,
    },
    { id: 'inFlight', isSecondary: true, header: 'In flight', align: 'end', cell: ({ inFlight }) => inFlight },
    {
      id: 'store',
      header: 'Store',
      cell: ({ store, breaker, failureMode }) => (
        <>
          {store}{' '}
          {breaker === 'closed' ? null : (
            <Badge tone="danger">
              breaker {breaker}
              {failureMode === undefined ? '' : `, ${failureMode}`}
            </Badge>
          )}
        </>
      ),
    },
    {
      id: 'p99',
      header: 'Store p99',
      align: 'end',
      cell: ({ storeP99Ms }) => durationText(storeP99Ms),
      sortValue: ({ storeP99Ms }) => storeP99Ms ?? 0,
    },
    {
      id: 'threads',
      isSecondary: true,
      header: 'Threads',
      align: 'end',
      cell: ({ threads, servingThreads }) =>
        threads === servingThreads ? threads : <Badge tone="warning">{`${servingThreads} of ${threads}`}</Badge>,
    },
    {
      id: 'uptime',
      header: 'Up',
      align: 'end',
      cell: ({ uptimeMs }) => durationText(uptimeMs),
      sortValue: ({ uptimeMs }) => uptimeMs,
    },
    { id: 'seen', isSecondary: true, header: 'Seen', cell: ({ lastSeenAt }) => agoText(lastSeenAt, nowMs()) },
    { id: 'version', isSecondary: true, header: 'Sluice', isCode: true, cell: ({ version }) => version },
  ]
}
