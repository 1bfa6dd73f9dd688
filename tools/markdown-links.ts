import { posix } from 'node:path'

/** A link from one file of the repository to another, or to a heading. */
export interface MarkdownLink {
  /** What stands in the parentheses. */
  readonly target: string
  /** The first line is 1. */
  readonly line: number
}

/** The relative links of a Markdown text. Links into the web, and what only looks like a link in code, are left out. */
export function relativeLinks(markdown: string): MarkdownLink[] {
  return withoutCode(markdown)
    .split('\n')
    .flatMap((text, index) =>
      [
        ...text.matchAll(/\[(?:[^\]\\]|\\.)*\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\s*\[[^\]]+\]:\s*<?([^\s>]+)/g),
      ].map((match) => ({ target: match[1] ?? match[2]!, line: index + 1 })),
    )
    .filter(({ target }) => !/^[a-z][a-z0-9+.-]*:|^\/\//i.test(target))
}

/** The names by which the headings of a Markdown text can be linked to, made as GitHub makes them. */
export function headingAnchors(markdown: string): Set<string> {
  const anchors = new Set<string>()
  const uses = new Map<string, number>()
  // Inline code stays: it is part of the name of a heading.
  for (const match of withoutFences(markdown).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = match[1]!
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
      .replaceAll(/\s/g, '-')
    const used = uses.get(slug) ?? 0
    uses.set(slug, used + 1)
    anchors.add(used === 0 ? slug : `${slug}-${used}`)
  }
  for (const match of markdown.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(match[1]!)
  return anchors
}

/** Where the files of the repository are, for {@link brokenLinks}. */
export interface LinkTargets {
  /** Whether a file or folder exists, by its path relative to the repository. */
  readonly exists: (path: string) => boolean
  /** The text of a Markdown file. */
  readonly read: (path: string) => string
}

/** The relative links of one file that lead nowhere, as `path:line target: what is wrong`. */
export function brokenLinks(path: string, { exists, read }: LinkTargets): string[] {
  return relativeLinks(read(path)).flatMap(({ target, line }) => {
    const [file = '', anchor] = decodeURIComponent(target).split('#')
    const goal = file === '' ? path : posix.join(file.startsWith('/') ? '.' : posix.dirname(path), file)
    const at = `${path}:${line} ${target}`
    if (goal.startsWith('..')) return [`${at}: leads out of the repository`]
    if (!exists(goal)) return [`${at}: ${goal} does not exist`]
    if (anchor === undefined || !goal.endsWith('.md')) return []
    return headingAnchors(read(goal)).has(anchor) ? [] : [`${at}: ${goal} has no heading '#${anchor}'`]
  })
}

/** Blanks out fenced code, keeping the lines so that line numbers stay. */
function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^([ \t]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t]*\2[`~]*[ \t]*$|$(?![\s\S]))/gm, blank)
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replaceAll(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, blank)
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}
