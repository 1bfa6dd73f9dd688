import type { NodeStatus } from '@sluice/contract'
import type { JSX } from 'preact'
import type { Tone } from '../../ui/controls/badge.tsx'
import { Badge } from '../../ui/controls/badge.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Card } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { compactText, durationText } from '../../ui/theme/format.ts'

const BREAKER_TONES: Readonly<Record<NodeStatus['breaker'], Tone>> = {
  closed: 'good',
  'half-open': 'warning',
  open: 'danger',
}

/** Every node: what it enforces, how old that is, and how its store answers. */
export function NodeList({ nodes, newest }: { nodes: readonly NodeStatus[]; newest: number }): JSX.Element {
  return (
    <Card title="Nodes" isFlush actions={<Link to="/nodes">All details</Link>}>
      <Table
        caption="Nodes"
        columns={columnsOf(newest)}
        rows={nodes}
        rowKey={({ id }) => id}
        empty="No node is known yet."
      />
    </Card>
  )
}

function columnsOf(newest: number): Column<NodeStatus>[] {
  return [
    {
      id: 'name',
      header: 'Node',
      cell: ({ id, name, isLost }) => (
        <>
          <Link to={`/?node=${encodeURIComponent(id)}`}>{name}</Link>{' '}
          {isLost ? <Badge tone="danger">lost</Badge> : null}
        </>
      ),
    },
    {
      id: 'version',
      header: 'Rules',
      cell: ({ configVersion }) => (
        <Badge tone={configVersion < newest ? 'warning' : 'neutral'}>v{configVersion}</Badge>
      ),
    },
    { id: 'lag', header: 'Lag', align: 'end', cell: ({ configLagMs }) => durationText(configLagMs) },
    {
      id: 'breaker',
      header: 'Store',
      cell: ({ store, breaker }) =>
        store === 'memory' ? <Badge>memory</Badge> : <Badge tone={BREAKER_TONES[breaker]}>{breaker}</Badge>,
    },
    { id: 'p99', header: 'p99', align: 'end', cell: ({ storeP99Ms }) => durationText(storeP99Ms) },
    { id: 'rate', header: 'Req/s', align: 'end', cell: (node) => compactText(Math.round(node.checksPerSecond)) },
  ]
}
