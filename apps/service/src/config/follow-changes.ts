import type { ConfigFollower, ConfigStore } from '@sluice/config-store'
import type { Logger } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { ThreadGroup } from '../thread-messages/message-bus.ts'

/** A database beside a file of rules, and what keeps this node up to date with what only the database has. */
export interface FollowedDatabase {
  readonly config: ConfigStore
  readonly follower: ConfigFollower
}

/** What a thread follows changes with. */
export interface FollowingParts {
  readonly threads: ThreadGroup<FollowMessages>
  /** Of the database that is changed. */
  readonly follower: Pick<ConfigFollower, 'refresh'>
  readonly log: Logger
}

/** Messages about configuration changes. */
export interface FollowMessages {
  /** Applies what was committed. `appliedBy`: number of the thread that applies it itself; -1 for none. */
  'config.follow': (appliedBy: number) => void
}

const NO_THREAD = -1

/** Lets this thread apply changes that another one made. */
export function shareFollowing(parts: FollowingParts): void {
  const { threads } = parts
  threads.handle('config.follow', async (appliedBy) => {
    if (appliedBy !== threads.index) await followHere(parts)
  })
}

/**
 * Applies what was committed before the call in every thread of this process: when it resolves, none of them uses the
 * previous configuration. It never rejects, because the change is committed by then. A thread that fails, or does not
 * confirm in time, is logged; it catches up by itself.
 */
export async function followInAllThreads(parts: FollowingParts): Promise<void> {
  await Promise.all([followHere(parts), othersFollow(parts)])
}

/** The same for a change that the main thread made. */
export async function followFromMain(group: Pick<ThreadGroup<FollowMessages>, 'gather'>): Promise<void> {
  await group.gather('config.follow', NO_THREAD)
}

async function followHere({ follower, log }: FollowingParts): Promise<void> {
  try {
    await follower.refresh()
  } catch (error) {
    log.warn('could not apply a configuration change at once', { error: errorFields(error) })
  }
}

async function othersFollow({ threads, log }: FollowingParts): Promise<void> {
  if (threads.count === 1) return
  try {
    const { timedOut } = await threads.gather('config.follow', threads.index)
    if (timedOut > 0) log.warn('threads did not confirm a configuration change in time', { threads: timedOut })
  } catch (error) {
    log.warn('could not ask other threads to apply a configuration change', { error: errorFields(error) })
  }
}
