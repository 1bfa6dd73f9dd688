import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { VersionsInForce } from '../config-store.ts'

const FORMAT = 'sluice-config'
const FORMAT_VERSION = 1

/** Chunk size for reading and writing: small, so that decisions are not delayed. */
const CHUNK_BYTES = 65_536

/** Upper bound of the length of the last line. */
const LONGEST_END = 512

/** Temporary files of crashed processes are removed if they are this much older than the file being written. */
const ABANDONED_AFTER_MS = 600_000

/** The first line of a cache file. */
export interface CacheHead {
  /** The database it was made from, as named by the user. */
  readonly source: string
  readonly versions: VersionsInForce
}

/** The last line of a cache file. */
export interface CacheEnd {
  /** Position in the change feed. */
  readonly position: number
  /** When it was known to be complete; milliseconds since 1970. */
  readonly currentAt: number
}

/** A complete and undamaged cache file. */
export interface OpenCache extends CacheHead, CacheEnd {
  /** Hash of the content. */
  readonly id: string
  /** Its entries in groups of lines, without line breaks. Can be read more than once. */
  lines(): AsyncGenerator<readonly string[]>
  close(): Promise<void>
}

/** `none`: there is no file. `refused`: it is torn, not a cache file, or of a newer version. */
export type CacheReading =
  | { readonly state: 'none' }
  | { readonly state: 'refused'; readonly reason: string }
  | { readonly state: 'whole'; readonly cache: OpenCache }

/**
 * Opens a cache file and verifies all of it before anything is used. The opened content stays the same even if the file
 * is replaced on disk. Rejects if the file exists and cannot be read.
 */
export async function openCache(path: string): Promise<CacheReading> {
  const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return { state: 'none' }
  let isKept = false
  try {
    const reading = await readWhole(handle)
    isKept = reading.state === 'whole'
    return reading
  } finally {
    if (!isKept) await handle.close()
  }
}

/**
 * Writes a cache file: first a temporary file next to it, which replaces it once it is complete and synced. Until then,
 * and if the process crashes, the previous file stays. Only its owner can read it.
 */
export class CacheWriter {
  readonly #path: string
  readonly #temporary: string
  readonly #handle: FileHandle
  readonly #hash: Hash = createHash('sha256')
  #gathered = ''
  #lines = 0

  private constructor(path: string, temporary: string, handle: FileHandle) {
    this.#path = path
    this.#temporary = temporary
    this.#handle = handle
  }

  /** `nonce`: unique among all writers of this file. */
  static async begin(path: string, nonce: string, { source, versions }: CacheHead): Promise<CacheWriter> {
    const folder = dirname(path)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const temporary = join(folder, `${basename(path)}.${nonce}.tmp`)
    const handle = await open(temporary, 'wx', 0o600)
    const writer = new CacheWriter(path, temporary, handle)
    try {
      await removeAbandoned(path, (await handle.stat()).mtimeMs)
      const head = { format: FORMAT, version: FORMAT_VERSION, source, versions }
      await writer.add(`${JSON.stringify(head)}\n`, 1)
      return writer
    } catch (error) {
      await writer.abandon()
      throw error
    }
  }

  /** `text`: complete lines; `lines`: how many. */
  async add(text: string, lines: number): Promise<void> {
    this.#gathered += text
    this.#lines += lines
    if (this.#gathered.length >= CHUNK_BYTES) await this.#write()
  }

  /** Replaces the file. Resolves with its id once it would survive a power loss. */
  async commit({ position, currentAt }: CacheEnd): Promise<string> {
    await this.#write()
    const end = { lines: this.#lines, position, currentAt }
    const sha256 = this.#hash.update(JSON.stringify(end)).digest('hex')
    await this.#handle.appendFile(`${JSON.stringify({ ...end, sha256 })}\n`)
    await this.#handle.sync()
    await this.#handle.close()
    await rename(this.#temporary, this.#path)
    await syncFolder(dirname(this.#path))
    return sha256
  }

  /** Discards the temporary file and leaves the existing one. Can be called after any failure. */
  async abandon(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    await rm(this.#temporary, { force: true })
  }

  async #write(): Promise<void> {
    const bytes = Buffer.from(this.#gathered)
    this.#gathered = ''
    this.#hash.update(bytes)
    await this.#handle.appendFile(bytes)
  }
}

interface End extends CacheEnd {
  readonly lines: number
  readonly sha256: string
  /** Offset of the last line. */
  readonly offset: number
}

async function readWhole(handle: FileHandle): Promise<CacheReading> {
  const end = await readEnd(handle)
  const hash = createHash('sha256')
  let head: unknown
  let lines = 0
  for await (const chunk of chunks(handle, end?.offset ?? (await handle.stat()).size)) {
    if (head === undefined) {
      head = headIn(chunk)
      const reason = refusalOf(head)
      if (reason !== undefined) return { state: 'refused', reason }
    }
    lines += linesIn(chunk)
    hash.update(chunk)
  }
  if (end === undefined || head === undefined) return { state: 'refused', reason: 'it is torn: its end is missing' }
  const { sha256, offset, ...said } = end
  if (hash.update(JSON.stringify(said)).digest('hex') !== sha256 || lines !== said.lines) {
    return { state: 'refused', reason: 'it is damaged: its checksum does not match' }
  }
  const { source, versions } = head as CacheHead
  const all = (): AsyncGenerator<readonly string[]> => entryLines(handle, offset)
  const close = (): Promise<void> => handle.close()
  const { position, currentAt } = said
  return {
    state: 'whole',
    cache: { source, versions: inForce(versions), position, currentAt, id: sha256, lines: all, close },
  }
}

/** JSON omits undefined fields. */
function inForce({ enforced, candidate }: VersionsInForce): VersionsInForce {
  return { enforced, candidate }
}

function refusalOf(head: unknown): string | undefined {
  const { format, version } = (head ?? {}) as { format?: unknown; version?: unknown }
  if (format !== FORMAT) return 'it is not a cache file of Sluice'
  if (version === FORMAT_VERSION) return undefined
  return (
    `it was written by another version of this program: its format is ${String(version)}, this one reads ` +
    `${FORMAT_VERSION}`
  )
}

function headIn(chunk: Buffer): unknown {
  try {
    return JSON.parse(chunk.toString('utf8', 0, Math.max(0, chunk.indexOf(10))))
  } catch {
    return {}
  }
}

/** The last line, if it is a valid end of a cache file. */
async function readEnd(handle: FileHandle): Promise<End | undefined> {
  const { size } = await handle.stat()
  const from = Math.max(0, size - LONGEST_END)
  const tail = Buffer.alloc(size - from)
  const { bytesRead } = await handle.read(tail, 0, tail.length, from)
  if (bytesRead !== tail.length || tail.at(-1) !== 10) return undefined
  const begin = tail.lastIndexOf(10, tail.length - 2) + 1
  try {
    const { lines, position, currentAt, sha256 } = JSON.parse(tail.toString('utf8', begin)) as End
    if (typeof sha256 !== 'string' || typeof position !== 'number') return undefined
    return { lines, position, currentAt, sha256, offset: from + begin }
  } catch {
    return undefined
  }
}

/** The content before `end`, in chunks of complete lines. Text after the last line break is skipped. */
async function* chunks(handle: FileHandle, end: number): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0)
  for (let position = 0; position < end; ) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - position))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) return
    position += bytesRead
    const read = buffer.subarray(0, bytesRead)
    const cut = read.lastIndexOf(10) + 1
    if (cut === 0) {
      rest = Buffer.concat([rest, read])
      continue
    }
    yield rest.length === 0 ? read.subarray(0, cut) : Buffer.concat([rest, read.subarray(0, cut)])
    rest = Buffer.from(read.subarray(cut))
  }
}

async function* entryLines(handle: FileHandle, end: number): AsyncGenerator<readonly string[]> {
  let isFirst = true
  for await (const chunk of chunks(handle, end)) {
    const lines = chunk.toString('utf8', 0, chunk.length - 1).split('\n')
    if (isFirst) lines.shift()
    isFirst = false
    if (lines.length > 0) yield lines
  }
}

function linesIn(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
  return lines
}

async function removeAbandoned(path: string, nowMs: number): Promise<void> {
  const folder = dirname(path)
  const start = `${basename(path)}.`
  for (const name of await readdir(folder)) {
    if (!name.startsWith(start) || !name.endsWith('.tmp')) continue
    const file = join(folder, name)
    const found = await stat(file).catch(() => undefined)
    if (found !== undefined && nowMs - found.mtimeMs > ABANDONED_AFTER_MS) await rm(file, { force: true })
  }
}

/**
 * A rename is durable once its folder is synced. Where folders cannot be opened (Windows), the operating system does
 * it.
 */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
