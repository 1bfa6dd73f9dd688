import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import type { JSX } from 'preact'
import { currentRole, mayCall } from '../../api/session.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import type { Tab } from '../../ui/controls/tabs.tsx'
import { Tabs } from '../../ui/controls/tabs.tsx'
import { LoadedView, ReadOnlyNotice } from '../../ui/feedback/states.tsx'
import { navigate, queryParameter } from '../../ui/navigation/router.ts'
import { Page } from '../../ui/shell/page.tsx'
import { EditVersion } from './edit-version.tsx'
import { BlocksTab } from './entries/blocks-tab.tsx'
import { MembersTab } from './entries/members-tab.tsx'
import { OverridesTab } from './entries/overrides-tab.tsx'
import { DenyListTab, ExemptionsTab, TiersTab } from './entries/parts-tabs.tsx'
import { RuleTable } from './rule-table.tsx'
import { CandidateCard } from './versions/candidate-card.tsx'
import { CandidateNotice } from './versions/candidate-notice.tsx'
import type { EnforcedRules } from './versions/enforced-rules.ts'
import { useEnforced } from './versions/enforced-rules.ts'
import type { VersionsTabProps } from './versions/versions-tab.tsx'
import { VersionsTab } from './versions/versions-tab.tsx'

/** How often to look for another published version. */
const REFRESH_MS = 3000

/** The rules that are enforced, their versions, and what holds for single callers. */
export function RulesPage(): JSX.Element {
  const enforced = useEnforced({ periodMs: REFRESH_MS })
  const reload = (): void => void enforced.reload()
  const number = enforced.state.value.value?.number
  const edited = useSignal<Version | undefined>(undefined)
  return (
    <Page
      title="Rules"
      badges={number === undefined ? undefined : <Badge tone="accent">version {number}</Badge>}
      description="Who may call what, how often. A change is a new version, and holds on every node within a second."
      actions={
        mayCall('createVersion') ? (
          <>
            <Button onClick={() => navigate('/rules/edit?view=yaml')}>Edit as YAML</Button>
            <Button kind="primary" icon="plus" onClick={() => navigate('/rules/edit?rule=new')}>
              New rule
            </Button>
          </>
        ) : undefined
      }
    >
      {mayCall('createVersion') ? null : <ReadOnlyNotice needed="editor" role={currentRole()} />}
      <LoadedView state={enforced.state} onRetry={reload}>
        {(rules) => (
          <>
            <Candidate rules={rules} onChange={reload} />
            <Tabs
              label="Parts of the rules"
              tabs={tabsOf(rules, {
                onChange: reload,
                onEdit: (version) => {
                  edited.value = version
                },
              })}
            />
          </>
        )}
      </LoadedView>
      <EditVersion
        version={edited.value}
        onClose={() => {
          edited.value = undefined
        }}
      />
    </Page>
  )
}

/** The version on its way: in full beside the versions, elsewhere in a line, so that what was asked for is in sight. */
function Candidate({ rules, onChange }: { rules: EnforcedRules; onChange: () => void }): JSX.Element | null {
  const { candidate } = rules
  if (candidate === undefined) return null
  return queryParameter('tab') === 'versions' ? (
    <CandidateCard key={candidate.number} rules={rules} candidate={candidate} onChange={onChange} />
  ) : (
    <CandidateNotice key={candidate.number} candidate={candidate} />
  )
}

function tabsOf(
  rules: EnforcedRules,
  { onChange, onEdit }: Pick<VersionsTabProps, 'onChange' | 'onEdit'>,
): readonly Tab[] {
  const { ruleSet } = rules
  const count = (items: readonly unknown[] | undefined): string =>
    items === undefined || items.length === 0 ? '' : ` ${items.length}`
  return [
    { id: 'rules', label: `Rules${count(ruleSet.rules)}`, content: () => <RuleTable ruleSet={ruleSet} /> },
    {
      id: 'versions',
      label: 'Versions',
      content: () => <VersionsTab rules={rules} onChange={onChange} onEdit={onEdit} />,
    },
    { id: 'overrides', label: 'Overrides', content: () => <OverridesTab /> },
    {
      id: 'tiers',
      label: `Tiers${count(ruleSet.tiers)}`,
      content: () => (
        <>
          <TiersTab rules={rules} onChange={onChange} />
          <MembersTab />
        </>
      ),
    },
    {
      id: 'exemptions',
      label: `Exemptions${count(ruleSet.exemptions)}`,
      content: () => <ExemptionsTab rules={rules} onChange={onChange} />,
    },
    {
      id: 'deny-list',
      label: `Deny list${count(ruleSet.denyList)}`,
      content: () => <DenyListTab rules={rules} onChange={onChange} />,
    },
    { id: 'blocks', label: 'Blocks', content: () => <BlocksTab /> },
  ]
}
