import { readFileSync, renameSync, writeFileSync } from 'node:fs'

const MOST_NODES = 1_000_000

/**
 * The node count that was saved last; undefined when there is none, or the file holds something else. A process that
 * starts while Redis is unreachable has no other way to know how many nodes share a limit.
 */
export function readNodeCount(path: string): number | undefined {
  try {
    const nodes = Number(readFileSync(path, 'utf8').trim())
    return Number.isInteger(nodes) && nodes >= 1 && nodes <= MOST_NODES ? nodes : undefined
  } catch {
    return undefined
  }
}

/** Saves the node count. The file is complete at any time: a new one replaces it. Throws when it cannot be written. */
export function saveNodeCount(path: string, nodes: number): void {
  const next = `${path}.new`
  writeFileSync(next, `${nodes}\n`, { mode: 0o600 })
  renameSync(next, path)
}
