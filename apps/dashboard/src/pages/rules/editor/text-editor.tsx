import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { after } from '../../../clock-and-timers.ts'
import { Card } from '../../../ui/shell/page.tsx'
import type { RuleDocument } from '../document/rule-document.ts'
import { problemText } from '../document/rule-document.ts'
import classes from './editor.module.css'

/** Characters up to which a text is read at every key: it takes a few milliseconds. That of 1000 rules takes 140. */
const READ_AT_ONCE = 8000

/** A pause in typing after which a longer text is read. */
const READ_AFTER_MS = 250

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
  const { text, type, read } = useTyping(document, onText)
  const problems = textProblems(document)
  const lines = text.split('\n')
  const lineCount = lines.length
  const numbers = useMemo(() => {
    const marked = new Set(problems.map(({ line }) => line))
    return (
      <ol ref={gutter} class={classes.gutter} aria-hidden="true">
        {Array.from({ length: lineCount }, (_, index) => (
          <li key={index} data-marked={marked.has(index + 1)}>
            {index + 1}
          </li>
        ))}
      </ol>
    )
  }, [document, lineCount])
  const goTo = (line: number): void => {
    const start = lines.slice(0, line - 1).reduce((sum, before) => sum + before.length + 1, 0)
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
        {numbers}
        <textarea
          ref={area}
          class={classes.area}
          aria-label="Rule set as YAML"
          aria-invalid={problems.length > 0}
          aria-describedby="yaml-problems"
          wrap="off"
          spellcheck={false}
          rows={Math.max(24, lineCount)}
          value={text}
          onInput={(event) => type(event.currentTarget.value)}
          onBlur={read}
          onScroll={(event) => {
            if (gutter.current !== null) gutter.current.scrollTop = event.currentTarget.scrollTop
          }}
        />
      </div>
      <ul id="yaml-problems" class={classes.textProblems} aria-live="polite">
        {problems.slice(0, 20).map((problem) => (
          <li key={`${problem.line} ${problem.text}`}>
            <button type="button" onClick={() => goTo(problem.line)}>
              Line {problem.line}
            </button>
            {problem.text}
          </li>
        ))}
      </ul>
    </Card>
  )
}

interface Typing {
  /** As it stands in the editor. */
  readonly text: string
  readonly type: (text: string) => void
  /** Reads what was typed, if it was not read yet. */
  readonly read: () => void
}

/** Reads what is typed, a long text only after a pause, and before anything else is done with the document. */
function useTyping(document: RuleDocument, onText: (text: string) => void): Typing {
  const unread = useSignal<string | undefined>(undefined)
  const stopWaiting = useRef<(() => void) | undefined>(undefined)
  const readNow = useRef<() => void>(() => undefined)
  readNow.current = () => {
    stopWaiting.current?.()
    const typed = unread.peek()
    if (typed === undefined) return
    unread.value = undefined
    onText(typed)
  }
  const read = (): void => readNow.current()
  const type = (text: string): void => {
    unread.value = text
    stopWaiting.current?.()
    if (text.length <= READ_AT_ONCE) read()
    else stopWaiting.current = after(READ_AFTER_MS, read)
  }
  useEffect(() => {
    // The page may be loaded again before the pause is over.
    window.addEventListener('pagehide', read)
    return () => {
      window.removeEventListener('pagehide', read)
      read()
    }
  }, [])
  return { text: unread.value ?? document.text, type, read }
}

interface LineProblem {
  readonly line: number
  readonly text: string
}

function textProblems({ textProblem, problems }: RuleDocument): readonly LineProblem[] {
  if (textProblem !== undefined) return [{ line: textProblem.line, text: textProblem.message }]
  return problems.map((problem) => ({ line: problem.line ?? 1, text: `${problem.path}: ${problemText(problem)}` }))
}
