import { beforeEach, describe, expect, it } from 'vitest'
import type { RollupRow, RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, MINUTE_MS } from './rollup-recorder.ts'

const AT = 1_700_000_040_000

function row(parts: Partial<RollupRow> = {}): RollupRow {
  return { stepMs: MINUTE_MS, at: AT, source: 'one', body: '{}', ...parts }
}

/** What every place for history must do. `open` gives an empty one. */
export function rollupStoreSuite(name: string, open: () => RollupStore | Promise<RollupStore>): void {
  describe(`${name} as a place for history`, () => {
    let store: RollupStore
    beforeEach(async () => {
      store = await open()
    })
    const list = (fromMs: number, toMs: number, stepMs = MINUTE_MS): Promise<readonly RollupRow[]> =>
      store.list({ fromMs, toMs, stepMs })

    it('gives back what was put, oldest first, from an instant on and before another', async () => {
      const rows = [2, 0, 3, 1].map((minute) => row({ at: AT + minute * MINUTE_MS, body: `{"m":${minute}}` }))
      await store.put(rows)
      expect((await list(AT, AT + 3 * MINUTE_MS)).map(({ body }) => body)).toEqual(['{"m":0}', '{"m":1}', '{"m":2}'])
      expect(await list(AT + 1, AT + MINUTE_MS)).toEqual([])
      expect(await list(AT + 3 * MINUTE_MS, Number.MAX_SAFE_INTEGER)).toEqual([rows[2]])
    })

    it('has one row for a span and source: the one that was put last', async () => {
      await store.put([row({ body: '{"n":1}' })])
      await store.put([row({ body: '{"n":2}' }), row({ source: 'two', body: '{"n":3}' })])
      await store.put([row({ body: '{"n":2}' })])
      const found = await list(0, Number.MAX_SAFE_INTEGER)
      expect(found.map(({ source, body }) => `${source} ${body}`).sort()).toEqual(['one {"n":2}', 'two {"n":3}'])
    })

    it('keeps spans of different length apart', async () => {
      const hour = row({ stepMs: HOUR_MS, at: AT - (AT % HOUR_MS) })
      const minute = row({ at: hour.at })
      await store.put([hour, minute])
      expect(await list(0, Number.MAX_SAFE_INTEGER, HOUR_MS)).toEqual([hour])
      expect(await list(0, Number.MAX_SAFE_INTEGER)).toEqual([minute])
    })

    it('forgets rows of one length that are older', async () => {
      const hour = row({ stepMs: HOUR_MS, at: AT - (AT % HOUR_MS) })
      await store.put([hour, row(), row({ at: AT + MINUTE_MS }), row({ at: AT + MINUTE_MS, source: 'two' })])
      await store.forget({ stepMs: MINUTE_MS, beforeMs: AT + 1 })
      expect((await list(0, Number.MAX_SAFE_INTEGER)).map(({ at }) => at)).toEqual([AT + MINUTE_MS, AT + MINUTE_MS])
      expect(await list(0, Number.MAX_SAFE_INTEGER, HOUR_MS)).toEqual([hour])
      await store.forget({ stepMs: MINUTE_MS, beforeMs: AT + MINUTE_MS })
      expect(await list(0, Number.MAX_SAFE_INTEGER)).toHaveLength(2)
    })

    it('keeps bodies as they are, and takes no rows at all', async () => {
      const body = JSON.stringify({
        resource: '/ünïcode/"quoted"/\\/\u0001',
        list: Array.from({ length: 2000 }, String),
      })
      await store.put([row({ body })])
      await store.put([])
      expect((await list(0, Number.MAX_SAFE_INTEGER)).map((found) => found.body)).toEqual([body])
    })
  })
}
