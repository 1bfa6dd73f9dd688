import { LOOPBACK } from '../process/free-port.ts'
import type { RedisServer } from './redis-server.ts'

/** Slots of a Redis Cluster. */
export const SLOT_COUNT = 16_384

/**
 * The slot of a key, from 0 to 16,383: CRC-16 (XMODEM) of its UTF-8 bytes, or of its hash tag, the text between the
 * first `{` and the next `}` if that is not empty.
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  return crc16(Buffer.from(hashed)) % SLOT_COUNT
}

const POLYNOMIAL = 0x1021

function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? POLYNOMIAL : 0)) & 0xffff
  }
  return crc
}

const MIGRATE_WITHIN_MS = 5000

/** A master at one end of a migration. */
export interface MigrationEnd {
  readonly server: RedisServer
  readonly id: string
}

/**
 * A slot in migration from one master to another. Until {@link finish}, the old master answers for the keys it still
 * has and with ASK for all others; the new one answers only after ASKING; a call for several keys of which some have
 * moved gets TRYAGAIN.
 */
export class SlotMigration {
  readonly slot: number
  readonly from: MigrationEnd
  readonly to: MigrationEnd
  readonly #settle: () => Promise<void>

  private constructor(slot: number, ends: { from: MigrationEnd; to: MigrationEnd }, settle: () => Promise<void>) {
    this.slot = slot
    this.from = ends.from
    this.to = ends.to
    this.#settle = settle
  }

  /** @param settle - called at the end, to wait until all nodes know the owner of the slot */
  static async begin(
    slot: number,
    ends: { from: MigrationEnd; to: MigrationEnd },
    settle: () => Promise<void>,
  ): Promise<SlotMigration> {
    const { from, to } = ends
    await to.server.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id)
    await from.server.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id)
    return new SlotMigration(slot, ends, settle)
  }

  /** Moves these keys, or all keys of the slot; missing ones are ignored. Resolves with the number of moved keys. */
  async moveKeys(keys?: readonly string[]): Promise<number> {
    // A key may be arbitrary bytes, which must not change.
    const connection = await this.from.server.connect({ encoding: 'latin1' })
    try {
      const count = await connection.send('CLUSTER', 'COUNTKEYSINSLOT', this.slot)
      const stored = (await connection.send('CLUSTER', 'GETKEYSINSLOT', this.slot, Number(count))) as readonly string[]
      const wanted = keys?.map((key) => Buffer.from(key).toString('latin1'))
      const moving = wanted === undefined ? stored : stored.filter((key) => wanted.includes(key))
      if (moving.length === 0) return 0
      const target = [LOOPBACK, this.to.server.port, '', 0, MIGRATE_WITHIN_MS]
      await connection.send('MIGRATE', ...target, 'KEYS', ...moving)
      return moving.length
    } finally {
      await connection.close()
    }
  }

  /** Assigns the slot to the new master. Resolves when all nodes know. Move all keys first. */
  async finish(): Promise<void> {
    // The new master first: if the old one died in between, no node would serve the slot.
    for (const { server } of [this.to, this.from])
      await server.command('CLUSTER', 'SETSLOT', this.slot, 'NODE', this.to.id)
    await this.#settle()
  }
}
