import { useSignal } from '@preact/signals'
import type { RuleSet } from '@sluice/core/policy'
import { diffRuleSets } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { useQuery } from '../../../api/query.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { Segments } from '../../../ui/controls/field.tsx'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import type { MergeConflict, Side } from '../document/merge-rule-sets.ts'
import { conflictKey, mergeRuleSets } from '../document/merge-rule-sets.ts'
import type { LooseRuleSet, RuleDocument } from '../document/rule-document.ts'
import { withBase, withValue } from '../document/rule-document.ts'
import { ChangeList, propertyChanges } from '../versions/change-list.tsx'
import type { EnforcedRules } from '../versions/enforced-rules.ts'
import { loadEnforced } from '../versions/enforced-rules.ts'
import classes from './editor.module.css'

export interface ConflictViewProps {
  /** The edit that somebody else was faster than; undefined closes the dialog. */
  readonly document: RuleDocument | undefined
  readonly onClose: () => void
  /** Receives the edit on top of what is enforced now. It is not published yet. */
  readonly onMerged: (document: RuleDocument) => void
}

/** Two editors: what they published, what you changed, and both put together. */
export function ConflictView({ document, onClose, onMerged }: ConflictViewProps): JSX.Element {
  return (
    <Dialog title="Somebody else published" isOpen={document !== undefined} isWide onClose={onClose}>
      {document === undefined ? null : <Merge document={document} onClose={onClose} onMerged={onMerged} />}
    </Dialog>
  )
}

function Merge({ document, onClose, onMerged }: ConflictViewProps & { document: RuleDocument }): JSX.Element {
  const current = useQuery(`base ${document.base.version}`, loadEnforced)
  return (
    <LoadedView state={current.state} onRetry={() => void current.reload()}>
      {(theirs) => <MergeForm document={document} theirs={theirs} onClose={onClose} onMerged={onMerged} />}
    </LoadedView>
  )
}

interface MergeFormProps extends ConflictViewProps {
  readonly document: RuleDocument
  readonly theirs: EnforcedRules
}

function MergeForm({ document, theirs, onClose, onMerged }: MergeFormProps): JSX.Element {
  const choices = useSignal<ReadonlyMap<string, Side>>(new Map())
  const { base } = document
  const mine = document.value as unknown as RuleSet
  const { ruleSet, conflicts } = mergeRuleSets({ base: base.ruleSet, mine, theirs: theirs.ruleSet }, choices.value)
  const author = theirs.versions.find(({ number }) => number === theirs.number)?.createdBy ?? 'somebody'
  const merge = (): void => {
    const onTop = withBase(document, { version: theirs.number, ruleSet: theirs.ruleSet })
    onMerged(withValue(onTop, ruleSet as unknown as LooseRuleSet))
  }
  return (
    <div class={classes.dialog}>
      <p>
        Version {theirs.number} by <b>{author}</b> is enforced. You began with version {base.version}. Nothing of yours
        is lost.
      </p>
      <div class={classes.sides}>
        <section>
          <h3>{author} changed</h3>
          <ChangeList changes={diffRuleSets(base.ruleSet, theirs.ruleSet)} />
        </section>
        <section>
          <h3>You changed</h3>
          <ChangeList changes={diffRuleSets(base.ruleSet, mine)} />
        </section>
      </div>
      {conflicts.length === 0 ? (
        <p class={classes.fine}>Both sets of changes fit together.</p>
      ) : (
        <ul class={classes.conflicts}>
          {conflicts.map((conflict) => (
            <Conflict
              key={conflictKey(conflict)}
              conflict={conflict}
              side={choices.value.get(conflictKey(conflict)) ?? 'mine'}
              onChoose={(side) => {
                choices.value = new Map([...choices.value, [conflictKey(conflict), side]])
              }}
            />
          ))}
        </ul>
      )}
      <div class={classes.dialogActions}>
        <Button onClick={onClose}>Decide later</Button>
        <Button kind="primary" onClick={merge}>
          Put both together
        </Button>
      </div>
    </div>
  )
}

interface ConflictProps {
  readonly conflict: MergeConflict
  readonly side: Side
  readonly onChoose: (side: Side) => void
}

/** Something that both changed differently. */
function Conflict({ conflict, side, onChoose }: ConflictProps): JSX.Element {
  const { part, name, mine, theirs } = conflict
  return (
    <li>
      <div class={classes.conflictHead}>
        <span>
          Both changed <code>{name === '' ? part : name}</code>
        </span>
        <Segments
          label={`Whose ${name === '' ? part : name}`}
          value={side}
          choices={[
            { value: 'mine', label: 'Take mine' },
            { value: 'theirs', label: 'Take theirs' },
          ]}
          onChange={onChoose}
        />
      </div>
      <dl class={classes.conflictValues}>
        {propertyChanges(theirs, mine).map(({ name: property, from, to }) => (
          <div key={property}>
            <dt>{property === '' ? 'value' : property}</dt>
            <dd>theirs {from ?? 'not there'}</dd>
            <dd>mine {to ?? 'not there'}</dd>
          </div>
        ))}
      </dl>
    </li>
  )
}
