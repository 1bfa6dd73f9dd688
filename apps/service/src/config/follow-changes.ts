import type { ConfigFollower, ConfigStore } from '@sluice/config-store'
import type { Logger } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import type { ThreadGroup } from '../threads/message-bus.ts'

/** A database beside a file of rules, and what keeps this node up to date with what only the database has. */
export interface FollowedDatabase {
  readonly config: ConfigStore
  readonly follower: ConfigFollower
}

/** What a thread follows changes with. */
export interface FollowingParts {
  readonly threads: ThreadGroup
  /** Of the database that is changed. */
  readonly follower: Pick<ConfigFollower, 'refresh'>
  readonly log: Logger
}

/** On this topic threads follow what was changed. The question is the number of the thread that asks, which does so itself. */
const TOPIC = 'config.follow'

/** Asks in the place of a thread: nobody has done it yet. */
const NO_THREAD = -1

/** From now on this thread follows a change when another one asks for it. */
export function shareFollowing(parts: FollowingParts): void {
  const { threads } = parts
  threads.answer(TOPIC, async (asking) => {
    if (asking !== threads.index) await followHere(parts)
    return true
  })
}

/**
 * Follows what was committed before the call, in every thread of this process that answers requests: when it resolves, none of
 * them goes by what was before. It never rejects, because the change is made by then. A thread that cannot follow, or does not
 * say within seconds that it has, is told of in the log; it follows by itself as soon as it can.
 */
export async function followInAllThreads(parts: FollowingParts): Promise<void> {
  await Promise.all([followHere(parts), othersFollow(parts)])
}

/** The same for a change that the main thread has made, which may answer no requests itself. */
export async function followFromMain(group: ThreadGroup): Promise<void> {
  await group.gather(TOPIC, NO_THREAD)
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
    const answers = await threads.gather<boolean>(TOPIC, threads.index, false)
    const silent = answers.filter((hasAnswered) => !hasAnswered).length
    if (silent > 0) log.warn('threads did not confirm a configuration change in time', { threads: silent })
  } catch (error) {
    log.warn('could not ask other threads to apply a configuration change', { error: errorFields(error) })
  }
}
