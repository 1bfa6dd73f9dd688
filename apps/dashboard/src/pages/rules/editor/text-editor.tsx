import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { Card } from '../../../ui/shell/page.tsx'
import type { RuleDocument } from '../document/rule-document.ts'
import { problemText } from '../document/rule-document.ts'
import classes from './editor.module.css'

/** The whole document as YAML, with line numbers and the lines of problems. */
export function TextEditor({
  document,
  onText,
}: {
  document: RuleDocument
  onText: (text: string) => void
}): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null)
  const gutter = useRef<HTMLOListElement>(null)
  const problems = textProblems(document)
  const lines = document.text.split('\n')
  const marked = new Set(problems.map(({ line }) => line))
  const goTo = (line: number): void => {
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0)
    area.current?.focus()
    area.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
  }
  return (
    <Card
      title="rules.yaml"
      description="The whole rule set. Comments are not kept: the service stores values."
      isFlush
    >
      <div class={classes.text}>
        <ol ref={gutter} class={classes.gutter} aria-hidden="true">
          {lines.map((_, index) => (
            <li key={index} data-marked={marked.has(index + 1)}>
              {index + 1}
            </li>
          ))}
        </ol>
        <textarea
          ref={area}
          class={classes.area}
          aria-label="Rule set as YAML"
          aria-invalid={problems.length > 0}
          aria-describedby="yaml-problems"
          wrap="off"
          spellcheck={false}
          rows={Math.max(24, lines.length)}
          value={document.text}
          onInput={(event) => onText(event.currentTarget.value)}
          onScroll={(event) => {
            if (gutter.current !== null) gutter.current.scrollTop = event.currentTarget.scrollTop
          }}
        />
      </div>
      <ul id="yaml-problems" class={classes.textProblems} aria-live="polite">
        {problems.slice(0, 20).map(({ line, text }) => (
          <li key={`${line} ${text}`}>
            <button type="button" onClick={() => goTo(line)}>
              Line {line}
            </button>
            {text}
          </li>
        ))}
      </ul>
    </Card>
  )
}

interface LineProblem {
  readonly line: number
  readonly text: string
}

function textProblems({ textProblem, problems }: RuleDocument): readonly LineProblem[] {
  if (textProblem !== undefined) return [{ line: textProblem.line, text: textProblem.message }]
  return problems.map((problem) => ({ line: problem.line ?? 1, text: `${problem.path}: ${problemText(problem)}` }))
}
