import { useSignal } from '@preact/signals'
import { describeMatch, describeTier } from '@sluice/core/internal'
import type { DenyEntry, Exemption, Tier } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import { mayCall } from '../../../api/session.ts'
import { Badge } from '../../../ui/controls/badge.tsx'
import { Button } from '../../../ui/controls/button.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { Column } from '../../../ui/table/table.tsx'
import { Table } from '../../../ui/table/table.tsx'
import { instantText, pluralText } from '../../../ui/theme/format.ts'
import { attempt } from '../../lists/paged-list.tsx'
import type { EnforcedRules } from '../versions/enforced-rules.ts'
import classes from './entries.module.css'
import { MatchDialog } from './match-dialog.tsx'
import { TierDialog } from './tier-dialog.tsx'

export interface PartsTabProps {
  readonly rules: EnforcedRules
  readonly onChange: () => void
}

/** The named groups of callers. */
export function TiersTab({ rules, onChange }: PartsTabProps): JSX.Element {
  const editing = useSignal<Partial<Tier> | undefined>(undefined)
  const ifMatch = `"${rules.number}"`
  const remove = ({ name }: Tier): Promise<boolean> =>
    attempt(() => call('deleteTier', { parameters: { name }, ifMatch }), `Tier ${name} is removed.`)
  return (
    <PartList
      title="Tiers"
      description="A tier multiplies limits, adds bursts, or has rules of its own."
      empty="No tiers: everybody has the same limits."
      entries={rules.ruleSet.tiers ?? []}
      mayEdit={mayCall('putTier')}
      meaning={(tier) => describeTier(tier)}
      onAdd={() => {
        editing.value = {}
      }}
      onEdit={(tier) => {
        editing.value = tier
      }}
      onRemove={remove}
      onChange={onChange}
    >
      <TierDialog
        key={editing.value?.name}
        tier={editing.value}
        version={rules.number}
        onClose={() => {
          editing.value = undefined
        }}
        onDone={onChange}
      />
    </PartList>
  )
}

/** The requests that rules are not for. */
export function ExemptionsTab({ rules, onChange }: PartsTabProps): JSX.Element {
  const editing = useSignal<Partial<Exemption> | undefined>(undefined)
  const ifMatch = `"${rules.number}"`
  const remove = ({ name }: Exemption): Promise<boolean> =>
    attempt(() => call('deleteExemption', { parameters: { name }, ifMatch }), `Exemption ${name} is removed.`)
  return (
    <PartList
      title="Exemptions"
      description="Requests that the rules are not for. Of several that match, the first counts."
      empty="No exemptions: the rules are for every request."
      entries={rules.ruleSet.exemptions ?? []}
      mayEdit={mayCall('putExemption')}
      meaning={exemptionText}
      onAdd={() => {
        editing.value = {}
      }}
      onEdit={(exemption) => {
        editing.value = exemption
      }}
      onRemove={remove}
      onChange={onChange}
    >
      <MatchDialog
        key={editing.value?.name}
        kind="exemption"
        entry={editing.value}
        version={rules.number}
        onClose={() => {
          editing.value = undefined
        }}
        onDone={onChange}
      />
    </PartList>
  )
}

/** An exemption in a sentence. */
function exemptionText({ match, rules: { length } = [] }: Exemption): string {
  if (length === 0) return `No rule limits ${describeMatch(match)}.`
  return `Only ${pluralText(length, 'rule')} of its own ${length === 1 ? 'limits' : 'limit'} ${describeMatch(match)}.`
}

/** The requests that are always denied. */
export function DenyListTab({ rules, onChange }: PartsTabProps): JSX.Element {
  const editing = useSignal<Partial<DenyEntry> | undefined>(undefined)
  const ifMatch = `"${rules.number}"`
  const remove = ({ name }: DenyEntry): Promise<boolean> =>
    attempt(() => call('deleteDenyEntry', { parameters: { name }, ifMatch }), `Entry ${name} is removed.`)
  return (
    <PartList
      title="Deny list"
      description="Requests that are denied whatever else is said."
      empty="The deny list is empty."
      entries={rules.ruleSet.denyList ?? []}
      mayEdit={mayCall('putDenyEntry')}
      meaning={({ match, expiresAt }) =>
        `Denies ${describeMatch(match)}${expiresAt === undefined ? '.' : ` until ${instantText(expiresAt)}.`}`
      }
      onAdd={() => {
        editing.value = {}
      }}
      onEdit={(entry) => {
        editing.value = entry
      }}
      onRemove={remove}
      onChange={onChange}
    >
      <MatchDialog
        key={editing.value?.name}
        kind="deny"
        entry={editing.value}
        version={rules.number}
        onClose={() => {
          editing.value = undefined
        }}
        onDone={onChange}
      />
    </PartList>
  )
}

interface PartListProps<P extends { readonly name: string }> {
  readonly title: string
  readonly description: string
  readonly empty: string
  readonly entries: readonly P[]
  readonly mayEdit: boolean
  /** The entry in a sentence. */
  readonly meaning: (entry: P) => string
  readonly onAdd: () => void
  readonly onEdit: (entry: P) => void
  /** Resolves with whether it was removed. */
  readonly onRemove: (entry: P) => Promise<boolean>
  readonly onChange: () => void
  /** The dialog. */
  readonly children: JSX.Element
}

function PartList<P extends { readonly name: string }>(props: PartListProps<P>): JSX.Element {
  const { title, description, empty, entries, mayEdit, meaning, onAdd, onEdit, onRemove, onChange } = props
  const columns: readonly Column<P>[] = [
    { id: 'name', header: 'Name', cell: ({ name }) => <Badge tone="accent">{name}</Badge> },
    { id: 'meaning', header: 'What it says', wraps: true, cell: meaning },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (entry) =>
        mayEdit ? (
          <span class={classes.head}>
            <Button kind="quiet" onClick={() => onEdit(entry)}>
              Edit
            </Button>
            <Button
              kind="quiet"
              onClick={() =>
                void onRemove(entry).then((isRemoved) => {
                  if (isRemoved) onChange()
                })
              }
            >
              Remove
            </Button>
          </span>
        ) : null,
    },
  ]
  return (
    <Card
      isFlush
      title={title}
      description={description}
      actions={
        mayEdit ? (
          <Button icon="plus" onClick={onAdd}>
            Add
          </Button>
        ) : undefined
      }
    >
      <Table caption={title} columns={columns} rows={entries} rowKey={({ name }) => name} empty={empty} />
      {props.children}
    </Card>
  )
}
