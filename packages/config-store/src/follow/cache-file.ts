import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { VersionsInForce } from '../config-store.ts'

const FORMAT = 'sluice-config'
const FORMAT_VERSION = 1

/** So much is read, or gathered before it is written, at once: small, so that decisions do not wait for long in between. */
const CHUNK_BYTES = 65_536

/** The last line is shorter than this. */
const LONGEST_END = 512

/** What a process that died left behind is removed when it is so much older than what is being written. */
const ABANDONED_AFTER_MS = 600_000

/** What a cache file says about itself in its first line. */
export interface CacheHead {
  /** Which database it was made from, in the user's words. */
  readonly source: string
  readonly versions: VersionsInForce
}

/** What it says in its last line. */
export interface CacheEnd {
  /** How far the change feed had been followed. */
  readonly position: number
  /** When it was known to be all there is; milliseconds since 1970. */
  readonly currentAt: number
}

/** A cache file that was found whole and unharmed. */
export interface OpenCache extends CacheHead, CacheEnd {
  /** Another for every other content. */
  readonly id: string
  /** Its entries, some lines at a time, each without the line break. May be read more than once. */
  lines(): AsyncGenerator<readonly string[]>
  close(): Promise<void>
}

/** `none`: there is no file. `refused`: it is torn, not ours, or newer than this program. */
export type CacheReading =
  | { readonly state: 'none' }
  | { readonly state: 'refused'; readonly reason: string }
  | { readonly state: 'whole'; readonly cache: OpenCache }

/**
 * Opens a cache file and reads all of it once, to be sure of it before anything of it is used. What was opened stays the same, also
 * when another takes its place on disk. Rejects when the file is there and cannot be read.
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
 * Writes a cache file: into a file beside it, which takes its place when it is complete and on disk. Until then, and when the process
 * dies in between, the one that was there stays. Only its owner may read it.
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

  /** `nonce`: a text that no other writer of the same file has. */
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

  /** `text`: whole lines, so many of them. */
  async add(text: string, lines: number): Promise<void> {
    this.#gathered += text
    this.#lines += lines
    if (this.#gathered.length >= CHUNK_BYTES) await this.#write()
  }

  /** Puts it in its place; resolves with its id when it will be found there after a loss of power. */
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

  /** Leaves what stands there alone. May be called after anything failed. */
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
  /** Where the last line begins. */
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
    return { state: 'refused', reason: 'it is damaged: its checksum is another one' }
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

/** JSON leaves out what is undefined. */
function inForce({ enforced, candidate }: VersionsInForce): VersionsInForce {
  return { enforced, candidate }
}

function refusalOf(head: unknown): string | undefined {
  const { format, version } = (head ?? {}) as { format?: unknown; version?: unknown }
  if (format !== FORMAT) return 'it is not a cache file of Sluice'
  if (version === FORMAT_VERSION) return undefined
  return `it was written by another version of this program: its format is ${String(version)}, this one reads ${FORMAT_VERSION}`
}

function headIn(chunk: Buffer): unknown {
  try {
    return JSON.parse(chunk.toString('utf8', 0, Math.max(0, chunk.indexOf(10))))
  } catch {
    return {}
  }
}

/** The last line, if it is one that ends a cache file. */
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

/** What stands before `end`, in chunks of whole lines; what follows the last line break is left out. */
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

/** A new name is on disk when its folder is. Where folders cannot be opened (Windows), the system sees to it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
