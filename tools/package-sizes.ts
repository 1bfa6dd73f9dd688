/** A row of the table of entries in docs/reference/package.md. */
export interface StatedSize {
  /** Such as `sluice/express`. */
  readonly entry: string
  /** A program that imports the name that the row speaks of, and keeps it. */
  readonly program: string
  /** At most this many, of 1,000 bytes each, minified and compressed with gzip. */
  readonly kilobytes: number
}

const ROW = /^\| `import \{ (\w+) \} from '([\w/-]+)'` \|.*\| (\d+) kB \|$/gm

/** The rows of the table that state a size. */
export function statedSizes(markdown: string): StatedSize[] {
  return [...markdown.matchAll(ROW)].map(([, name, entry, kilobytes]) => ({
    entry: entry!,
    program: `import { ${name} } from '${entry}'; globalThis.kept = ${name}`,
    kilobytes: Number(kilobytes),
  }))
}
