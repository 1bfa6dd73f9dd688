import { posix } from 'node:path'
import type { SourceFile } from './import-rules.ts'
import { scanImports } from './import-scanner.ts'

// Cycles between files are found by the linter (`noImportCycles`).

/**
 * Finds folders that import each other in a circle: a folder imports another when one of its files does. Each file of
 * `root` counts by itself, because the entry of a package imports what is below it.
 */
export function findFolderCycles(files: readonly SourceFile[], root: string): string[][] {
  const folderOf = (path: string): string => (posix.dirname(path) === root ? path : posix.dirname(path))
  const paths = new Set(files.map(({ path }) => path))
  const edges = new Map<string, string[]>()
  for (const { path, text } of files) {
    const from = folderOf(path)
    const targets = scanImports(text, path)
      .filter(({ specifier }) => specifier?.startsWith('.'))
      .map(({ specifier }) => posix.join(posix.dirname(path), specifier!))
      .filter((target) => paths.has(target) && folderOf(target) !== from)
    edges.set(from, [...(edges.get(from) ?? []), ...targets.map(folderOf)])
  }
  return findCycles(edges)
}

/**
 * Finds circles in a graph. Each is a shortest one through its first node, which is repeated at the end:
 * `['a', 'b', 'a']`. Of nodes that several circles share, one circle is named, so the next run may show another.
 */
export function findCycles(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = []
  const named = new Set<string>()
  for (const start of [...edges.keys()].sort()) {
    if (named.has(start)) continue
    const cycle = shortestCycle(start, edges)
    if (cycle === undefined) continue
    for (const node of cycle) named.add(node)
    cycles.push(cycle)
  }
  return cycles
}

/** Breadth first from `start` until an edge leads back to it. */
function shortestCycle(start: string, edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const seen = new Set<string>()
  const paths: string[][] = [[start]]
  // The loop also walks the paths that it appends.
  for (const path of paths) {
    const targets = edges.get(path.at(-1)!) ?? []
    if (targets.includes(start)) return [...path, start]
    paths.push(...targets.filter((target) => !seen.has(target)).map((target) => [...path, target]))
    for (const target of targets) seen.add(target)
  }
  return undefined
}
