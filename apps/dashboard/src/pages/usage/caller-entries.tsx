import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { mayCall } from '../../api/session.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { LoadedView } from '../../ui/feedback/states.tsx'
import { showFailure, showToast } from '../../ui/overlay/toast.tsx'
import { Card } from '../../ui/shell/page.tsx'
import { instantText } from '../../ui/theme/format.ts'
import type { Caller } from '../callers/caller.ts'
import { termsText } from '../callers/terms-text.ts'
import classes from './usage.module.css'

export interface CallerEntriesProps {
  readonly caller: Caller
  /** Another number makes the entries be read again. */
  readonly changes: number
  readonly onChange: () => void
}

/** What holds for one caller besides the rules: overrides, tiers, blocks. */
export function CallerEntries({ caller, changes, onChange }: CallerEntriesProps): JSX.Element {
  const parameters = { dimension: caller.dimension, entity: caller.entity }
  const entries = useQuery(`${caller.dimension} ${caller.entity} ${changes}`, async (signal) => {
    const [overrides, members, blocks] = await Promise.all([
      call('listOverrides', { parameters, signal }),
      call('listMembers', { parameters, signal }),
      call('listBlocks', { parameters, signal }),
    ])
    return { overrides: overrides.items, members: members.items, blocks: blocks.items }
  })
  const remove = async (work: () => Promise<unknown>, text: string): Promise<void> => {
    try {
      await work()
      showToast(text)
      onChange()
    } catch (error) {
      showFailure(error)
    }
  }
  return (
    <Card title="What holds for this caller alone">
      <LoadedView state={entries.state} onRetry={() => void entries.reload()}>
        {({ overrides, members, blocks }) => (
          <ul class={classes.entries}>
            {overrides.length + members.length + blocks.length === 0 ? (
              <li class={classes.muted}>No override, no tier, no block: the rules hold as they are.</li>
            ) : null}
            {blocks.map(({ entry, changedBy }) => (
              <li key={`block ${entry.until}`}>
                <Badge tone="denied">blocked</Badge>
                <span>
                  until {instantText(entry.until)} {entry.reason === undefined ? '' : `(${entry.reason})`}
                  {entry.rule === undefined ? ` by ${changedBy}` : ` by the penalty of ${entry.rule}`}
                </span>
                {mayCall('deleteBlock') ? (
                  <Button
                    kind="quiet"
                    onClick={() => void remove(() => call('deleteBlock', { parameters }), 'The block is lifted.')}
                  >
                    Lift
                  </Button>
                ) : null}
              </li>
            ))}
            {overrides.map(({ entry, changedBy }) => (
              <li key={`override ${entry.resource}`}>
                <Badge tone="accent">override</Badge>
                <span>
                  {termsText(entry.terms)} for rules of <code>{entry.resource}</code>
                  {entry.expiresAt === undefined ? '' : ` until ${instantText(entry.expiresAt)}`}, set by {changedBy}
                </span>
                {mayCall('deleteOverride') ? (
                  <Button
                    kind="quiet"
                    onClick={() =>
                      void remove(
                        () => call('deleteOverride', { parameters: { ...parameters, resource: entry.resource } }),
                        'The override is removed.',
                      )
                    }
                  >
                    Remove
                  </Button>
                ) : null}
              </li>
            ))}
            {members.map(({ entry }) => (
              <li key={`tier ${entry.tier}`}>
                <Badge tone="accent">tier</Badge>
                <span>
                  {entry.tier}
                  {entry.expiresAt === undefined ? '' : ` until ${instantText(entry.expiresAt)}`}
                </span>
              </li>
            ))}
          </ul>
        )}
      </LoadedView>
    </Card>
  )
}
