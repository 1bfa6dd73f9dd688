import { posix } from 'node:path'
import type { SourceFile } from './import-rules.ts'
import { scanImports } from './import-scanner.ts'

/**
 * Finds files that import each other in a circle, types included. Each answer is one shortest circle through its
 * first file, which is repeated at the end: `['a.ts', 'b.ts', 'a.ts']`. Of each knot of files one circle is named, so
 * an answer that is mended may show another. Imports of files that are not given are ignored.
 */
export function findImportCycles(files: readonly SourceFile[]): string[][] {
  const paths = new Set(files.map((file) => file.path))
  const edges = files.map((file) => [file.path, importedFiles(file).filter((target) => paths.has(target))] as const)
  return cyclesIn(new Map(edges))
}

/**
 * The same for folders: a folder imports another when one of its files does. Each file of `root` counts by itself, because the
 * entry of a package imports what is below it.
 */
export function findFolderCycles(files: readonly SourceFile[], root: string): string[][] {
  const folderOf = (path: string): string => (posix.dirname(path) === root ? path : posix.dirname(path))
  const paths = new Set(files.map(({ path }) => path))
  const edges = new Map<string, Set<string>>()
  for (const file of files) {
    const from = folderOf(file.path)
    const targets = edges.get(from) ?? new Set()
    edges.set(from, targets)
    for (const target of importedFiles(file)) {
      if (paths.has(target) && folderOf(target) !== from) targets.add(folderOf(target))
    }
  }
  return cyclesIn(new Map(Array.from(edges, ([folder, targets]) => [folder, [...targets]] as const)))
}

function importedFiles({ path, text }: SourceFile): readonly string[] {
  return scanImports(text)
    .filter((site) => site.specifier?.startsWith('.'))
    .map((site) => posix.join(posix.dirname(path), site.specifier!))
}

function cyclesIn(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = []
  const named = new Set<string>()
  for (const start of [...edges.keys()].sort()) {
    if (named.has(start)) continue
    const cycle = shortestWayBack(start, edges)
    if (cycle === undefined) continue
    for (const path of cycle) named.add(path)
    cycles.push(cycle)
  }
  return cycles
}

/** Breadth first from `start` until an edge leads back to it. */
function shortestWayBack(start: string, edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const seen = new Set<string>()
  const ways: string[][] = [[start]]
  // Ways that are found while walking are walked in their turn.
  for (const way of ways) {
    const targets = edges.get(way.at(-1)!) ?? []
    if (targets.includes(start)) return [...way, start]
    ways.push(...targets.filter((target) => !seen.has(target)).map((target) => [...way, target]))
    for (const target of targets) seen.add(target)
  }
  return undefined
}
