import type { ThreadGroup } from '../threads/thread-group.ts'
import type { SignalRecorderParts, SignalSnapshot } from './alert-signals.ts'
import { SignalRecorder } from './alert-signals.ts'

const TOPIC = 'alert-signals'

/** Where this thread tells what alerts are about, for the desk in the main thread. To be called in each thread, once. */
export function threadSignals(threads: Pick<ThreadGroup, 'answer'>, parts: SignalRecorderParts): SignalRecorder {
  const recorder = new SignalRecorder(parts)
  threads.answer(TOPIC, () => recorder.snapshot())
  return recorder
}

/** What all threads know. */
export function gatherSignals(threads: Pick<ThreadGroup, 'gather'>): Promise<readonly SignalSnapshot[]> {
  return threads.gather<SignalSnapshot>(TOPIC)
}
