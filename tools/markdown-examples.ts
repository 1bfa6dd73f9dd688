/** A TypeScript block of a Markdown document. */
export interface MarkdownExample {
  /** Line of its first code line; the first line of the document is 1. */
  readonly line: number
  readonly code: string
  /**
   * The file it stands for, when its first line is a comment such as `// worker.ts`: other blocks import it, and it is
   * not run.
   */
  readonly file: string | undefined
  /** What it should print, line by line: the comment at the end of each line that prints. */
  readonly expected: readonly string[]
  /** Lines that print and do not say what, as they stand. */
  readonly unexplained: readonly string[]
}

const BLOCK = /^```ts\n([\s\S]*?)^```$/gm
const FILE_NAME = /^\/\/ ([a-z][a-z0-9-]*\.ts)\n/
const PRINTS = /\bconsole\.log\(/
const SAYS_WHAT = /\) \/\/ (.+)$/

/** The blocks of a document that are marked `ts`, in order. */
export function examplesOf(markdown: string): MarkdownExample[] {
  return [...markdown.matchAll(BLOCK)].map((match) => {
    const code = match[1]!
    const printing = code.split('\n').filter((line) => PRINTS.test(line))
    return {
      line: markdown.slice(0, match.index).split('\n').length + 1,
      code,
      file: FILE_NAME.exec(code)?.[1],
      expected: printing.flatMap((line) => SAYS_WHAT.exec(line)?.[1] ?? []),
      unexplained: printing.filter((line) => !SAYS_WHAT.test(line)),
    }
  })
}
