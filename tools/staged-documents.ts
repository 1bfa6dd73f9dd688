import { globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

/** The documents of the repository that users of the package need, as patterns of paths. */
const DOCUMENTS = [
  'docs/algorithms/*.md',
  'docs/guides/**/*.md',
  'docs/reference/*.md',
  'docs/benchmarks.md',
  'examples/http/*',
  'llms.txt',
]

/** A document of the package. */
export interface StagedDocument {
  /** Where it stands in the package. */
  readonly to: string
  readonly text: string
}

/**
 * The documents that go into the package: `readme`, a path in the repository, as its README, and the guides and the
 * reference where they are in the repository, because warnings and errors name them. Links between them work; those
 * that lead to something that is not in the package are only words.
 */
export function stagedDocuments(root: string, readme: string): StagedDocument[] {
  const places = new Map([[readme, 'README.md']])
  for (const path of globSync(DOCUMENTS, { cwd: root }).sort()) places.set(path, path)
  return [...places].map(([from, to]) => ({
    to,
    text: relinked(readFileSync(join(root, from), 'utf8'), { from, to, places }),
  }))
}

const LINK = /\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)/g

/** The text of a document that is moved, with links to where the others have been moved. */
function relinked(
  markdown: string,
  { from, to, places }: { readonly from: string; readonly to: string; readonly places: ReadonlyMap<string, string> },
): string {
  return markdown.replaceAll(LINK, (link, ...[words, target, heading = '']: string[]) => {
    if (words === undefined || target === undefined || /^[a-z]+:/.test(target)) return link
    const place = places.get(posix.join(dirname(from), target))
    return place === undefined ? words : `[${words}](${posix.relative(dirname(to), place)}${heading})`
  })
}
