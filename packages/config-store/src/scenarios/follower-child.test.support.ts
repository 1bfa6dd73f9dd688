// A process of its own with several nodes, which tells its parent when a change is in force.
import { systemClock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { ConfigStore } from '../config-store.ts'
import type { ConfigFollower } from '../follow/config-follower.ts'
import { followConfig } from '../follow/follow-config.ts'
import { openConfigStore } from '../open-config-store.ts'

/** What a parent sends. */
export type ToChild =
  | { readonly type: 'follow'; readonly url: string; readonly nodes: number }
  | { readonly type: 'end' }

/** What a child sends: it runs, all its nodes follow, a node has an entry in force, it has closed everything. */
export type FromChild =
  | { readonly type: 'running' | 'following' | 'ended' }
  | { readonly type: 'in-force'; readonly node: number; readonly entity: string; readonly atMs: number }

const open: { store: ConfigStore; follower: ConfigFollower }[] = []

const tell = (message: FromChild): void => void process.send!(message)

async function follow(url: string, node: number): Promise<void> {
  const store = await openConfigStore(url)
  const follower = followConfig({
    feed: store.feed,
    target: {
      useVersions: () => undefined,
      apply: (changes) => {
        const atMs = systemClock.nowMicros() / MICROS_PER_MS
        for (const change of changes) {
          if (change.kind === 'override') tell({ type: 'in-force', node, entity: change.key.entity, atMs })
        }
      },
      beginReload: () => undefined,
      endReload: () => undefined,
    },
  })
  open.push({ store, follower })
  await follower.ready()
  // The second look says that notifications are heard from now on.
  while (follower.stats().refreshes < 2) await follower.refresh()
}

process.on('message', async (message: ToChild) => {
  if (message.type === 'follow') {
    await Promise.all(Array.from({ length: message.nodes }, (_, node) => follow(message.url, node)))
    tell({ type: 'following' })
    return
  }
  for (const { store, follower } of open) {
    await follower.close()
    await store.close()
  }
  tell({ type: 'ended' })
  process.disconnect()
})
tell({ type: 'running' })
