import type { RuleSet, RuleSetChange, RuleSetProblem } from '@sluice/core/policy'
import { checkRuleSet, diffRuleSets } from '@sluice/core/policy'
import { readYaml, YamlError } from './yaml-reader.ts'
import { writeYaml } from './yaml-writer.ts'

/** A rule that is being edited: it may have anything in it. */
export type LooseRule = Readonly<Record<string, unknown>>

/** A rule set that is being edited. */
export type LooseRuleSet = Readonly<Record<string, unknown>> & { readonly rules: readonly LooseRule[] }

/** The version that an edit began with. */
export interface EditBase {
  /** 0 when no version was enforced. */
  readonly version: number
  readonly ruleSet: RuleSet
}

/**
 * A rule set that is being edited, as a form and as a text: one document. Each edit makes another one. A text that
 * cannot be read leaves the value as it was.
 */
export interface RuleDocument {
  readonly base: EditBase
  readonly value: LooseRuleSet
  /** As it was typed, or as the value is written. */
  readonly text: string
  /** Why the text cannot be read; undefined when the value is what it says. */
  readonly textProblem: TextProblem | undefined
  /** Everything that is wrong with the value. */
  readonly problems: readonly RuleSetProblem[]
}

/** Something that is wrong with a text. */
export interface TextProblem {
  readonly message: string
  /** Counted from 1. */
  readonly line: number
}

/** A document that says what is enforced. */
export function openDocument(base: EditBase): RuleDocument {
  return documentOf(base, base.ruleSet as unknown as LooseRuleSet)
}

/** The document with another value, as a form changes it. */
export function withValue(document: RuleDocument, value: LooseRuleSet): RuleDocument {
  return documentOf(document.base, value)
}

/** The document with another text, as somebody types it. */
export function withText(document: RuleDocument, text: string): RuleDocument {
  try {
    const { value, lines } = readYaml(text)
    if (typeof value !== 'object' || value === null || !('rules' in value) || !Array.isArray(value['rules'])) {
      const message = 'A rule set has a list of rules: begin with "rules:".'
      return { ...document, text, textProblem: { message, line: 1 } }
    }
    const problems = checkRuleSet(value).map((problem) => {
      const line = lineOf(problem.path, lines)
      return line === undefined ? problem : { ...problem, line }
    })
    return { base: document.base, value: value as LooseRuleSet, text, textProblem: undefined, problems }
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    return { ...document, text, textProblem: { message: error.message, line: error.line } }
  }
}

/** The document on top of a version that somebody else made meanwhile. */
export function withBase(document: RuleDocument, base: EditBase): RuleDocument {
  return { ...document, base }
}

function documentOf(base: EditBase, value: LooseRuleSet): RuleDocument {
  return { base, value, text: writeYaml(value), textProblem: undefined, problems: checkRuleSet(value) }
}

/** The line of a value, or of the nearest that contains it. */
function lineOf(path: string, lines: ReadonlyMap<string, number>): number | undefined {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const line = lines.get(at)
    if (line !== undefined || at === '') return line
  }
}

/** Whether the document can be published. */
export function isValid({ textProblem, problems }: RuleDocument): boolean {
  return textProblem === undefined && problems.length === 0
}

/** What publishing the document would change; nothing while it cannot be published. */
export function changesOf(document: RuleDocument): readonly RuleSetChange[] {
  return isValid(document) ? diffRuleSets(document.base.ruleSet, document.value as unknown as RuleSet) : []
}

/** The document with a rule in the place of another; undefined removes it; an index behind the last adds it. */
export function withRule(document: RuleDocument, index: number, rule: LooseRule | undefined): RuleDocument {
  const { rules } = document.value
  const others = rule === undefined ? rules.toSpliced(index, 1) : rules.toSpliced(index, 1, rule)
  return withValue(document, { ...document.value, rules: others })
}

/** The problems of one rule, by the path of the field within it: `/window`, or empty for the rule as a whole. */
export function problemsOfRule(document: RuleDocument, index: number): ReadonlyMap<string, RuleSetProblem> {
  const place = `/rules/${index}`
  const own = document.problems.filter(({ path }) => path === place || path.startsWith(`${place}/`))
  // The first of a field is the one to correct first.
  return new Map(own.toReversed().map((problem) => [problem.path.slice(place.length), problem]))
}

/** A problem as a sentence. */
export function problemText({ received, expected }: Pick<RuleSetProblem, 'received' | 'expected'>): string {
  return received === 'missing' || received === 'none' ? `Expected ${expected}.` : `${received} is not ${expected}.`
}
