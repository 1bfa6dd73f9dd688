import type { ScriptRunner } from '../wire/script-runner.ts'
import type { RedisConnection } from './connection.ts'
import { hashSlotOf } from './hash-slot.ts'

/** Slots in a row that one primary serves, which is known by its host and port. */
interface SlotRange {
  readonly first: number
  readonly last: number
  readonly primary: string
}

/** A range as CLUSTER SLOTS tells it: first slot, last slot, and the nodes, the primary first. */
type SlotEntry = readonly [first: number, last: number, primary: readonly [host: Buffer, port: number], ...unknown[]]

/** Which primary serves which slots of a cluster, as any of its nodes knows it. */
export async function slotRanges(send: RedisConnection['send']): Promise<readonly SlotRange[]> {
  const entries = (await send(['CLUSTER', 'SLOTS'], '')) as readonly SlotEntry[]
  return entries.map(([first, last, [host, port]]) => ({ first, last, primary: `${String(host)}:${port}` }))
}

/**
 * A name for each primary that leads a script there: its slot is on that node. Names begin with the prefix, so that users who
 * may touch nothing else may use them. A server alone has one.
 */
export async function nodeAnchors(
  runner: ScriptRunner,
  { connection, prefix }: { readonly connection: RedisConnection; readonly prefix: string },
): Promise<readonly string[]> {
  const nameOf = (number: number): string => `${prefix}:{${number}}`
  if (!connection.isCluster) return [nameOf(0)]
  const ranges = await slotRanges((command, key) => runner.command(command, key))
  const wanted = new Set(new Map(ranges.map(({ primary, first }) => [primary, first])).values())
  const anchors: string[] = []
  for (let number = 0; wanted.size > 0; number++) {
    const name = nameOf(number)
    if (wanted.delete(hashSlotOf(name))) anchors.push(name)
  }
  return anchors
}
