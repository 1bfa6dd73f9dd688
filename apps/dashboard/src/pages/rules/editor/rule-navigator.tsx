import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { Button } from '../../../ui/controls/button.tsx'
import { Link } from '../../../ui/navigation/link.tsx'
import { pathWith, setQuery } from '../../../ui/navigation/router.ts'
import { Card } from '../../../ui/shell/page.tsx'
import { canonicalText } from '../document/merge-rule-sets.ts'
import type { LooseRule, RuleDocument } from '../document/rule-document.ts'
import { problemsOfRule } from '../document/rule-document.ts'
import classes from './editor.module.css'

/** The rules of the document, with marks for those that are changed or wrong. */
export function RuleNavigator({ document, selected }: { document: RuleDocument; selected: number }): JSX.Element {
  const { rules } = document.value
  const { base } = document
  const known = useMemo(() => new Set(base.ruleSet.rules.map(canonicalText)), [base])
  return (
    <Card
      title="Rules"
      isFlush
      actions={
        <Button
          kind="quiet"
          icon="plus"
          label="Add a rule"
          onClick={() => setQuery({ rule: 'new', view: undefined })}
        />
      }
    >
      <ol class={classes.navigator}>
        {rules.map((rule, index) => (
          <li key={index}>
            <Link
              to={pathWith({ rule: `#${index}` })}
              class={`${classes.navigatorRule} ${index === selected ? classes.selected : ''}`}
            >
              <span>
                {methodsOf(rule)}
                {String(rule['resource'] ?? '')}
              </span>
              <small>{String(rule['dimension'] ?? '')}</small>
              <Mark hasProblem={problemsOfRule(document, index).size > 0} isChanged={!known.has(canonicalText(rule))} />
            </Link>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function methodsOf({ methods }: LooseRule): string {
  return Array.isArray(methods) && methods.length > 0 ? `${methods.join(' ')} ` : ''
}

function Mark({ hasProblem, isChanged }: { hasProblem: boolean; isChanged: boolean }): JSX.Element | null {
  if (hasProblem) return <i class={classes.wrong} title="Has a problem" />
  return isChanged ? <i class={classes.changed} title="Changed" /> : null
}
