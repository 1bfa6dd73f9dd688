import { useSignal } from '@preact/signals'
import type { Version } from '@sluice/contract'
import { ruleName } from '@sluice/core/internal'
import type { PolicyRule } from '@sluice/core/policy'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { currentRole, mayCall } from '../../../api/session.ts'
import { Badge } from '../../../ui/controls/badge.tsx'
import { Button } from '../../../ui/controls/button.tsx'
import { Segments } from '../../../ui/controls/field.tsx'
import { LoadedView, Notice, ReadOnlyNotice } from '../../../ui/feedback/states.tsx'
import { navigate, queryParameter, setQuery } from '../../../ui/navigation/router.ts'
import { Card, Page } from '../../../ui/shell/page.tsx'
import type { LooseRule, RuleDocument } from '../document/rule-document.ts'
import { changesOf, isValid, withRule, withText } from '../document/rule-document.ts'
import { ChangeList } from '../versions/change-list.tsx'
import type { EnforcedRules } from '../versions/enforced-rules.ts'
import { useEnforced } from '../versions/enforced-rules.ts'
import { ConflictView } from './conflict-view.tsx'
import classes from './editor.module.css'
import { dropEdit, editing, keepEdit, openEdit } from './editor-state.ts'
import { PublishDialog } from './publish-dialog.tsx'
import { RuleForm } from './rule-form.tsx'
import { RuleNavigator } from './rule-navigator.tsx'
import { TextEditor } from './text-editor.tsx'

/** How often to look for a version that was published meanwhile. */
const REFRESH_MS = 2000

const VIEWS = [
  { value: 'form', label: 'Form' },
  { value: 'yaml', label: 'YAML' },
] as const

const NEW_RULE: LooseRule = { resource: '/', dimension: 'user', limit: 100, window: '1m' }

/** Edits the rule set as a form and as YAML: one document. Nothing holds before it is published. */
export function EditorPage(): JSX.Element {
  const enforced = useEnforced({ periodMs: REFRESH_MS })
  if (!mayCall('createVersion')) {
    return (
      <Page title="Edit rules">
        <ReadOnlyNotice needed="editor" role={currentRole()} />
      </Page>
    )
  }
  return (
    <LoadedView state={enforced.state} onRetry={() => void enforced.reload()}>
      {(rules) => <Editor rules={rules} onPublished={() => void enforced.reload()} />}
    </LoadedView>
  )
}

function Editor({ rules, onPublished }: { rules: EnforcedRules; onPublished: () => void }): JSX.Element | null {
  const isRestored = useSignal(false)
  useEffect(() => {
    isRestored.value = openEdit({ version: rules.number, ruleSet: rules.ruleSet })
  }, [])
  const document = editing.value
  if (document === undefined) return null
  return (
    <OpenEditor
      document={document}
      rules={rules}
      isRestored={isRestored.value}
      onPublished={({ stage }) => {
        dropEdit()
        onPublished()
        navigate(stage === 'enforce' ? '/rules' : '/rules?tab=versions')
      }}
    />
  )
}

interface OpenEditorProps {
  readonly document: RuleDocument
  readonly rules: EnforcedRules
  readonly isRestored: boolean
  readonly onPublished: (version: Version) => void
}

function OpenEditor({ document, rules, isRestored, onPublished }: OpenEditorProps): JSX.Element {
  const isPublishing = useSignal(false)
  const isMerging = useSignal(false)
  const view = queryParameter('view') === 'yaml' || document.textProblem !== undefined ? 'yaml' : 'form'
  const changes = changesOf(document)
  const isOvertaken = rules.number !== document.base.version
  const selected = useSelectedRule(document)
  return (
    <Page
      title="Edit rules"
      badges={<Badge tone="accent">from version {document.base.version}</Badge>}
      description="Nothing holds before you publish it. Your edit stays here while you look at other pages."
      actions={
        <>
          <Segments
            label="View of the document"
            value={view}
            choices={VIEWS}
            onChange={(value) => setQuery({ view: value === 'form' ? undefined : value })}
          />
          <Button
            onClick={() => {
              dropEdit()
              navigate('/rules')
            }}
          >
            Discard
          </Button>
          <Button
            kind="primary"
            disabled={!isValid(document) || changes.length === 0}
            onClick={() => {
              isPublishing.value = true
            }}
          >
            Review and publish
          </Button>
        </>
      }
    >
      {isOvertaken ? (
        <Notice
          tone="warning"
          action={
            <Button
              disabled={!isValid(document)}
              onClick={() => {
                isMerging.value = true
              }}
            >
              Compare and merge
            </Button>
          }
        >
          <strong>
            Version {rules.number} is enforced by now; your edit began with version {document.base.version}.
          </strong>{' '}
          Nothing is lost. Put both together before you publish.
        </Notice>
      ) : null}
      {isRestored ? <Notice icon="check">This is the edit that you began before the page was loaded.</Notice> : null}
      <div class={classes.layout}>
        <div class={classes.side}>
          <RuleNavigator document={document} selected={selected} />
        </div>
        <div class={classes.main}>
          {view === 'yaml' ? (
            <TextEditor document={document} onText={(text) => keepEdit(withText(document, text))} />
          ) : (
            <SelectedRule document={document} index={selected} />
          )}
        </div>
        <div class={classes.side}>
          <Card title={changes.length === 0 ? 'Changes' : `Changes: ${changes.length}`}>
            {isValid(document) ? (
              <ChangeList changes={changes} />
            ) : (
              <p class={classes.muted}>Changes are shown when all problems are solved.</p>
            )}
          </Card>
        </div>
      </div>
      <PublishDialog
        document={isPublishing.value ? document : undefined}
        changes={changes}
        onClose={() => {
          isPublishing.value = false
        }}
        onPublished={onPublished}
        onConflict={() => {
          isPublishing.value = false
          isMerging.value = true
        }}
      />
      <ConflictView
        document={isMerging.value ? document : undefined}
        onClose={() => {
          isMerging.value = false
        }}
        onMerged={(merged) => {
          isMerging.value = false
          keepEdit(merged)
        }}
      />
    </Page>
  )
}

/** The index of the rule that the URL names, which is added first when it is a new one; -1 when there is none. */
function useSelectedRule(document: RuleDocument): number {
  const wanted = queryParameter('rule')
  const { rules } = document.value
  useEffect(() => {
    if (wanted !== 'new') return
    keepEdit(withRule(document, rules.length, NEW_RULE))
    setQuery({ rule: `#${rules.length}` })
  }, [wanted])
  const [, place] = /^#(\d+)$/.exec(wanted ?? '') ?? []
  if (place !== undefined) return Number(place) < rules.length ? Number(place) : -1
  const named = rules.findIndex((rule) => nameOf(rule) === wanted)
  return named === -1 && rules.length > 0 && wanted === undefined ? 0 : named
}

/** A rule that is being edited may have no usable name. */
export function nameOf(rule: LooseRule): string {
  try {
    return ruleName(rule as unknown as PolicyRule)
  } catch {
    return ''
  }
}

function SelectedRule({ document, index }: { document: RuleDocument; index: number }): JSX.Element {
  const rule = document.value.rules[index]
  if (rule === undefined) {
    return (
      <Card>
        <p class={classes.none}>Choose a rule on the left, or add one.</p>
      </Card>
    )
  }
  return (
    <RuleForm
      key={index}
      document={document}
      index={index}
      onChange={(changed) => {
        keepEdit(withRule(document, index, changed))
        // The name may be another one now: the place of the rule stays.
        setQuery({ rule: `#${index}` })
      }}
      onRemove={() => {
        keepEdit(withRule(document, index, undefined))
        setQuery({ rule: undefined })
      }}
    />
  )
}
