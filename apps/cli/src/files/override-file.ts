import type { Override } from '@sluice/contract'
import { MOST_BULK_ENTRIES } from '@sluice/contract'
import { invalidFile, parseDocumentText } from './document.ts'

/** Bytes of overrides in one request: what a bulk request may have, less the rest of it. */
const MOST_BYTES = 8_000_000

/**
 * The overrides in a file: a list in YAML or JSON, the same under `overrides`, or, when its name ends with .ndjson or .jsonl, one
 * JSON object in each line.
 */
export function readOverrides(text: string, path: string): readonly Override[] {
  const value = /\.(?:ndjson|jsonl)$/i.test(path) ? linesOf(text, path) : listOf(parseDocumentText(text, path), path)
  for (const [index, entry] of value.entries()) {
    if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) continue
    throw invalidFile(path, `entry ${index + 1} is no override; expected dimension, entity, resource and terms.`)
  }
  if (value.length === 0) throw invalidFile(path, 'it has no overrides; expected at least one.')
  return value as readonly Override[]
}

/** The overrides in parts that fit into a request each, in their order. */
export function inParts(overrides: readonly Override[]): readonly (readonly Override[])[] {
  const parts: Override[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const override of overrides) {
    const size = Buffer.byteLength(JSON.stringify(override)) + 1
    const last = parts.at(-1)
    if (last === undefined || last.length >= MOST_BULK_ENTRIES || bytes + size > MOST_BYTES) {
      parts.push([override])
      bytes = size
    } else {
      last.push(override)
      bytes += size
    }
  }
  return parts
}

function listOf(document: unknown, path: string): readonly unknown[] {
  const list: unknown = Array.isArray(document) ? document : (document as { overrides?: unknown } | null)?.overrides
  if (Array.isArray(list)) return list
  throw invalidFile(path, 'it is no list; expected overrides one after the other, or below "overrides".')
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
