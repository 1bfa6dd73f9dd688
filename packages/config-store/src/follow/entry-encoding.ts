import type { EntryChange } from '../config-store.ts'

/**
 * Encodes an entry as one line of the cache file: a JSON array of its kind, the parts of its key, and an object with
 * the rest, for example `["member","user","u1",{"tier":"gold"}]`. Undefined for a removed entry.
 */
export function encodeEntry(change: EntryChange): string | undefined {
  if (change.entry === undefined) return undefined
  return `${encodeEntryKey(change)},${JSON.stringify(restOf(change))}]\n`
}

/** The beginning of that line, up to the end of the key. It identifies the entry. */
export function encodeEntryKey(change: EntryChange): string {
  return JSON.stringify([change.kind, ...keyParts(change)]).slice(0, -1)
}

/**
 * The same for an encoded line. Kind and key are strings, the rest is an object. Strings may contain anything,
 * including `,{`.
 */
export function entryKeyOf(line: string): string {
  let end = endOfString(line, 1)
  while (line.startsWith(',"', end)) end = endOfString(line, end + 1)
  return line.slice(0, end)
}

/** The end of the JSON string whose opening quotation mark is at `start`. */
function endOfString(line: string, start: number): number {
  let quote = start
  for (;;) {
    quote = line.indexOf('"', quote + 1)
    if (quote < 0) return line.length
    let backslashes = 0
    while (line[quote - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return quote + 1
  }
}

/** Decodes a line. Undefined for a kind that this program does not know. */
export function decodeEntry(line: string): EntryChange | undefined {
  const [kind, ...parts] = JSON.parse(line) as [string, ...unknown[]]
  const rest = parts.pop() as object
  const [first, second, third] = parts as string[]
  switch (kind) {
    case 'override':
      return found(kind, { dimension: first, entity: second, resource: third }, rest)
    case 'member':
    case 'block':
      return found(kind, { dimension: first, entity: second }, rest)
    case 'incident':
      return { kind, entry: rest } as EntryChange
    case 'api-key':
      return { kind, key: first, entry: { id: first, ...rest } } as EntryChange
    default:
      return undefined
  }
}

function found(kind: EntryChange['kind'], key: object, rest: object): EntryChange {
  return { kind, key, entry: { ...key, ...rest } } as EntryChange
}

function keyParts(change: EntryChange): readonly string[] {
  switch (change.kind) {
    case 'override':
      return [change.key.dimension, change.key.entity, change.key.resource]
    case 'member':
    case 'block':
      return [change.key.dimension, change.key.entity]
    case 'api-key':
      return [change.key]
    default:
      return []
  }
}

function restOf(change: EntryChange): object {
  switch (change.kind) {
    case 'override': {
      const { dimension, entity, resource, ...rest } = change.entry!
      return rest
    }
    case 'member':
    case 'block': {
      const { dimension, entity, ...rest } = change.entry!
      return rest
    }
    case 'api-key': {
      const { id, ...rest } = change.entry!
      return rest
    }
    default:
      return change.entry
  }
}
