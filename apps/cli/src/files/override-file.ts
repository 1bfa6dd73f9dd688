import type { Override } from '@sluice/contract'
import { MOST_BULK_ENTRIES } from '@sluice/contract'
import { invalidFile, parseDocumentText } from './read-document.ts'

/** Maximum size of the overrides in one request, in bytes: the body limit minus a margin. */
const MOST_BYTES = 8_000_000

/**
 * Parses overrides: a YAML or JSON list, an object with the list in `overrides`, or one JSON object per line if the
 * file name ends with .ndjson or .jsonl.
 */
export function readOverrides(text: string, path: string): readonly Override[] {
  const value = /\.(?:ndjson|jsonl)$/i.test(path) ? linesOf(text, path) : listOf(parseDocumentText(text, path), path)
  for (const [index, entry] of value.entries()) {
    if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) continue
    throw invalidFile(path, `entry ${index + 1} is not an override; expected dimension, entity, resource and terms.`)
  }
  if (value.length === 0) throw invalidFile(path, 'it contains no overrides; expected at least one.')
  return value as readonly Override[]
}

/** Splits overrides into batches that fit into one request each, in order. */
export function inBatches(overrides: readonly Override[]): readonly (readonly Override[])[] {
  const batches: Override[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const override of overrides) {
    const size = Buffer.byteLength(JSON.stringify(override)) + 1
    const last = batches.at(-1)
    if (last === undefined || last.length >= MOST_BULK_ENTRIES || bytes + size > MOST_BYTES) {
      batches.push([override])
      bytes = size
    } else {
      last.push(override)
      bytes += size
    }
  }
  return batches
}

function listOf(document: unknown, path: string): readonly unknown[] {
  const list: unknown = Array.isArray(document) ? document : (document as { overrides?: unknown } | null)?.overrides
  if (Array.isArray(list)) return list
  throw invalidFile(path, 'it is not a list; expected a list of overrides, or an object with "overrides".')
}

function linesOf(text: string, path: string): readonly unknown[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    try {
      return [parseDocumentText(JSON.stringify(JSON.parse(line)), path)]
    } catch (error) {
      throw invalidFile(path, `line ${index + 1} is not JSON (${(error as Error).message}).`)
    }
  })
}
