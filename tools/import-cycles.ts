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
  const edges = new Map(
    files.map((file) => {
      const targets = scanImports(file.text)
        .filter((site) => site.specifier?.startsWith('.'))
        .map((site) => posix.join(posix.dirname(file.path), site.specifier!))
      return [file.path, targets.filter((target) => paths.has(target))] as const
    }),
  )
  const cycles: string[][] = []
  const named = new Set<string>()
  for (const start of [...paths].sort()) {
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
