import { hashSlotOf } from './clients/hash-slot.ts'
import type { RedisConnection } from './connection.ts'
import type { ScriptRunner } from './script-runner.ts'

/** A range of slots as CLUSTER SLOTS tells it: first slot, last slot, and the nodes, the primary first. */
type SlotRange = readonly [first: number, last: number, primary: readonly [host: Buffer, port: number], ...unknown[]]

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
  const ranges = (await runner.command(['CLUSTER', 'SLOTS'], '')) as readonly SlotRange[]
  const primaries = new Map(ranges.map(([first, , [host, port]]) => [`${String(host)}:${port}`, first]))
  const wanted = new Set(primaries.values())
  const anchors: string[] = []
  for (let number = 0; wanted.size > 0; number++) {
    const name = nameOf(number)
    if (wanted.delete(hashSlotOf(name))) anchors.push(name)
  }
  return anchors
}
