import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DeliveryRecord, DeliveryStore } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { deliveryFileStore, StateFile } from './state-file.ts'

let path: string

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-alerts-'))
  path = join(folder, 'alerts.json')
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
})

async function open(): Promise<DeliveryStore<string>> {
  return deliveryFileStore<string>(await StateFile.open(path, () => undefined))
}

function pending(idempotencyKey: string, tries = 0): DeliveryRecord<string> {
  return { state: 'pending', idempotencyKey, message: `message ${idempotencyKey}`, addedAt: 1, tries }
}

describe('deliveries in a file', () => {
  it('are none at first', async () => {
    expect(await (await open()).load()).toEqual([])
  })

  it('are there after a restart, in the order in which they came, each as it was last', async () => {
    const store = await open()
    await store.save({ put: [pending('k1'), pending('k2')], removed: [] })
    await store.save({ put: [pending('k3'), pending('k1', 2)], removed: [] })
    expect(await (await open()).load()).toEqual([pending('k1', 2), pending('k2'), pending('k3')])
  })

  it('are gone when they are removed, also one that was never there', async () => {
    const store = await open()
    await store.save({ put: [pending('k1'), pending('k2')], removed: [] })
    await store.save({ put: [], removed: ['k1', 'k9'] })
    expect(await store.load()).toEqual([pending('k2')])
    expect(await (await open()).load()).toEqual([pending('k2')])
  })
})
