import type { JSX } from 'preact'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { countText, durationText, percentText } from '../../ui/theme/format.ts'
import { ALGORITHM_TEXTS } from './algorithm-texts.ts'
import { WorstWindow } from './lane-card.tsx'
import classes from './playground.module.css'
import type { Scenario } from './scenario.ts'
import type { Lane } from './simulation.ts'

/** The results as figures: the charts for those who cannot see them, and for copying. */
export function ComparisonTable({ lanes, scenario }: { lanes: readonly Lane[]; scenario: Scenario }): JSX.Element {
  const columns: readonly Column<Lane>[] = [
    { id: 'algorithm', header: 'Algorithm', cell: ({ algorithm }) => ALGORITHM_TEXTS[algorithm].label },
    {
      id: 'rule',
      isSecondary: true,
      header: 'Rule',
      isCode: true,
      wraps: true,
      cell: ({ rule }) => <span class={classes.rule}>{ruleText(rule)}</span>,
    },
    {
      id: 'admitted',
      header: 'Admitted',
      align: 'end',
      cell: ({ admittedCount }) => countText(admittedCount),
      sortValue: ({ admittedCount }) => admittedCount,
    },
    {
      id: 'denied',
      header: 'Denied',
      align: 'end',
      cell: ({ admittedCount, deniedCount }) =>
        `${countText(deniedCount)} (${percentText(deniedCount / Math.max(1, admittedCount + deniedCount))})`,
      sortValue: ({ deniedCount }) => deniedCount,
    },
    {
      id: 'worst',
      header: 'Within any window',
      cell: (lane) => <WorstWindow lane={lane} scenario={scenario} />,
      sortValue: ({ worstWindow }) => worstWindow,
    },
    {
      id: 'wait',
      header: 'Longest wait',
      align: 'end',
      cell: ({ longestDelayMs }) => durationText(longestDelayMs),
    },
  ]
  return (
    <Table caption="Results of each algorithm" columns={columns} rows={lanes} rowKey={({ algorithm }) => algorithm} />
  )
}

/** The rule as somebody would write it in a rule set. */
function ruleText(rule: Lane['rule']): string {
  return Object.entries(rule)
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
}
