import { describeRule, ruleName } from '@sluice/core/internal'
import type { PolicyRule, RuleSet } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { mayCall } from '../../api/session.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { Empty } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { navigate, queryParameter, setQuery } from '../../ui/navigation/router.ts'
import { Card } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { pluralText } from '../../ui/theme/format.ts'
import classes from './rule-table.module.css'

/** The rules that are enforced, with a search over names, resources and sentences. */
export function RuleTable({ ruleSet }: { ruleSet: RuleSet }): JSX.Element {
  const search = queryParameter('search') ?? ''
  const rules = ruleSet.rules.filter((rule) => isFound(rule, search))
  if (ruleSet.rules.length === 0) {
    return (
      <Card>
        <Empty
          title="No rules yet"
          icon="rules"
          action={
            mayCall('createVersion') ? (
              <Button kind="primary" onClick={() => navigate('/rules/edit?rule=new')}>
                Write the first rule
              </Button>
            ) : undefined
          }
        >
          Without a rule nothing is limited.
        </Empty>
      </Card>
    )
  }
  return (
    <Card
      isFlush
      title={
        search === ''
          ? pluralText(rules.length, 'rule')
          : `${rules.length} of ${pluralText(ruleSet.rules.length, 'rule')}`
      }
      actions={
        <div class={classes.search}>
          <TextInput
            label="Search rules"
            isLabelHidden
            type="search"
            placeholder="Search: a resource, a dimension, a word"
            value={search}
            onInput={(text) => setQuery({ search: text })}
          />
        </div>
      }
    >
      <Table
        caption="Rules that are enforced"
        columns={COLUMNS}
        rows={rules}
        rowKey={(rule) => ruleName(rule)}
        empty="No rule has these words."
      />
    </Card>
  )
}

/** Every word must stand somewhere in the rule. */
function isFound(rule: PolicyRule, search: string): boolean {
  const text = `${ruleName(rule)} ${rule.resource} ${rule.dimension} ${describeRule(rule).join(' ')}`.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

const COLUMNS: readonly Column<PolicyRule>[] = [
  {
    id: 'resource',
    header: 'Resource',
    isCode: true,
    cell: (rule) => (
      <>
        {rule.methods === undefined ? null : <span class={classes.methods}>{rule.methods.join(' ')} </span>}
        {rule.resource}
      </>
    ),
    sortValue: ({ resource }) => resource,
  },
  { id: 'dimension', header: 'Counts', cell: ({ dimension }) => dimension, sortValue: ({ dimension }) => dimension },
  {
    id: 'meaning',
    header: 'What it says',
    wraps: true,
    cell: (rule) => {
      const [first, ...others] = describeRule(rule)
      return (
        <span class={classes.meaning}>
          {first} {others.length === 0 ? null : <small>{others.join(' ')}</small>}
        </span>
      )
    },
  },
  {
    id: 'algorithm',
    isSecondary: true,
    header: 'Algorithm',
    cell: ({ algorithm = 'gcra' }) => algorithm,
    sortValue: ({ algorithm = 'gcra' }) => algorithm,
  },
  { id: 'state', header: 'State', cell: (rule) => <RuleState rule={rule} /> },
  {
    id: 'actions',
    header: 'Actions',
    isHeaderHidden: true,
    align: 'end',
    cell: (rule) => <RuleActions rule={rule} />,
  },
]

/** How far a rule is enforced. */
function RuleState({ rule }: { rule: Pick<PolicyRule, 'enabled' | 'shadow' | 'percent'> }): JSX.Element {
  if (rule.enabled === false) return <Badge>off</Badge>
  if (rule.shadow === true) return <Badge tone="warning">shadow</Badge>
  if (rule.percent !== undefined && rule.percent < 100) return <Badge tone="accent">{rule.percent}%</Badge>
  return <Badge tone="good">enforced</Badge>
}

function RuleActions({ rule }: { rule: PolicyRule }): JSX.Element {
  const name = ruleName(rule)
  return (
    <span class={classes.actions}>
      <Link to={`/decisions?${new URLSearchParams({ rule: name })}`}>Decisions</Link>
      {mayCall('createVersion') ? <Link to={`/rules/edit?${new URLSearchParams({ rule: name })}`}>Edit</Link> : null}
    </span>
  )
}
