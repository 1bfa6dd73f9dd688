import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { RollupTable } from '@sluice/config-store'
import type { NowMs } from '@sluice/runtime'

/** What nodes publish: how they stand, recent decisions, and what alerts are about. */
export type ReportKind = 'report' | 'decisions' | 'signals'

/** A published text and who published it. */
export interface PublishedReport {
  readonly node: string
  readonly body: string
}

/** Where nodes publish what others read. Calls reject if it is unreachable. */
export interface ReportExchange {
  /** How often a node publishes each kind. */
  readonly everyMs: Readonly<Record<ReportKind, number>>
  /** A node whose report has not changed for so long is lost. */
  readonly lostAfterMs: number
  /** Replaces what this node has published. */
  publish(kind: ReportKind, node: string, body: string): Promise<void>
  /** What all nodes have published, this one included. */
  readAll(kind: ReportKind): Promise<readonly PublishedReport[]>
  /** Removes what a node has published of these kinds. */
  remove(node: string, kinds: readonly ReportKind[]): Promise<void>
}

/** Runs scripts on one key of Redis. */
export interface ScriptRunner {
  run(script: string, key: string, args: readonly string[]): Promise<unknown>
}

/** Larger strings are compressed. */
const COMPRESS_FROM_BYTES = 4096

const COMPRESSED = 'z'
const PLAIN = '-'

/** A string as it is published. */
export function packed(body: string): string {
  if (body.length < COMPRESS_FROM_BYTES) return PLAIN + body
  return COMPRESSED + deflateRawSync(body, { level: 1 }).toString('base64')
}

/** The text that was packed. */
export function unpacked(text: string): string {
  if (!text.startsWith(COMPRESSED)) return text.slice(PLAIN.length)
  return inflateRawSync(Buffer.from(text.slice(COMPRESSED.length), 'base64')).toString()
}

/** How long what a node has published stays in Redis. */
const REDIS_KEPT_MS: Readonly<Record<ReportKind, number>> = { report: 10_000, decisions: 30_000, signals: 20_000 }

/**
 * The nodes that have published lately: lines of a time in milliseconds and the name of a node. By the clock of Redis.
 * ARGV: node (empty to read only), time to live in milliseconds. Uses only commands that the counters need as well.
 */
const INDEX = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lines = {}
local there = redis.call('MGET', KEYS[1])[1] or ''
for at, node in string.gmatch(there, '(%d+) ([^\\n]+)') do
  if node ~= ARGV[1] and tonumber(at) + ARGV[2] > now then lines[#lines + 1] = at .. ' ' .. node end
end
if ARGV[1] ~= '' then
  lines[#lines + 1] = string.format('%d', now) .. ' ' .. ARGV[1]
  redis.call('PSETEX', KEYS[1], ARGV[2], table.concat(lines, '\\n'))
end
return table.concat(lines, '\\n')
`

const READ = "return redis.call('MGET', KEYS[1])[1]"
const WRITE = "redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1]) return 1"

/** Reports in Redis: one key for each node, and one with their names, which ends with them. */
export function redisExchange(link: ScriptRunner, prefix: string): ReportExchange {
  const keyOf = (kind: ReportKind, node: string): string => `${prefix}:node:${kind}:${node}`
  const index = async (kind: ReportKind, node: string): Promise<readonly string[]> => {
    const lines = await link.run(INDEX, `${prefix}:nodes:${kind}`, [node, String(REDIS_KEPT_MS[kind])])
    return typeof lines === 'string' && lines !== '' ? lines.split('\n').map((line) => line.split(' ')[1] ?? '') : []
  }
  return {
    everyMs: { report: 1000, decisions: 5000, signals: 5000 },
    lostAfterMs: 5000,
    async publish(kind, node, body) {
      await link.run(WRITE, keyOf(kind, node), [packed(body), String(REDIS_KEPT_MS[kind])])
      await index(kind, node)
    },
    async readAll(kind) {
      const nodes = await index(kind, '')
      const bodies = await Promise.all(nodes.map((node) => link.run(READ, keyOf(kind, node), [])))
      return nodes.flatMap((node, place) => {
        const text = bodies[place]
        return typeof text === 'string' && text !== '' ? [{ node, body: unpacked(text) }] : []
      })
    },
    async remove(node, kinds) {
      for (const kind of kinds) await link.run(WRITE, keyOf(kind, node), ['', '1'])
    },
  }
}

const HOUR_MS = 3_600_000

/**
 * Steps under which reports stand in the table of rollups, beside those of history. No span of history has such a
 * length.
 */
const DATABASE_STEP_MS: Readonly<Record<ReportKind, number>> = {
  report: 3_600_001,
  decisions: 3_600_002,
  signals: 3_600_003,
}

/** Reports in the database: one row for each node and hour. */
export function databaseExchange(table: RollupTable, nowMs: NowMs): ReportExchange {
  const hourOf = (): number => Math.floor(nowMs() / HOUR_MS) * HOUR_MS
  let forgottenHour = 0
  const put = (kind: ReportKind, source: string, body: string): Promise<void> =>
    table.put([{ stepMs: DATABASE_STEP_MS[kind], at: hourOf(), source, body }])
  return {
    everyMs: { report: 2000, decisions: 10_000, signals: 5000 },
    lostAfterMs: 10_000,
    async publish(kind, node, body) {
      await put(kind, node, packed(body))
      const hour = hourOf()
      if (hour === forgottenHour) return
      for (const stepMs of Object.values(DATABASE_STEP_MS)) {
        await table.forget({ stepMs, beforeMs: hour - HOUR_MS })
      }
      forgottenHour = hour
    },
    async readAll(kind) {
      const hour = hourOf()
      const span = { stepMs: DATABASE_STEP_MS[kind], fromMs: hour - HOUR_MS, toMs: hour + 2 * HOUR_MS }
      // The latest row of each node: they are read oldest first.
      const latest = new Map((await table.list(span)).map(({ source, body }) => [source, body]))
      return [...latest].flatMap(([node, body]) => (body === '' ? [] : [{ node, body: unpacked(body) }]))
    },
    async remove(node, kinds) {
      for (const kind of kinds) await put(kind, node, '')
    },
  }
}
