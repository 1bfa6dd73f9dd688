/** What the service says that programs want to know. `firstKey` is the first API key, when it was just made. */
export type ServiceEvent =
  | { readonly event: 'started'; readonly url: string; readonly firstKey: string | null }
  /** The key was made after the start, because the database was unreachable until then; or the start was interrupted. */
  | { readonly event: 'firstKey'; readonly firstKey: string }

const RUNNING = /^ +health +(https?:\S+)\/livez\b/m
const FIRST_KEY = /^ +(slk_\w+)\s*\n/m
const COMPLETE = /^Try it:$/m

/** Reads what the service prints to its end; gives what it says when it is up, once, and the first key, whenever it comes. */
export async function* readStartup(output: AsyncIterable<string>): AsyncGenerator<ServiceEvent, void, void> {
  let text = ''
  let isUp = false
  let firstKey: string | undefined
  for await (const piece of output) {
    text += piece
    firstKey ??= FIRST_KEY.exec(text)?.[1]
    const url = isUp ? undefined : RUNNING.exec(text)?.[1]
    if (url !== undefined && COMPLETE.test(text)) {
      isUp = true
      yield { event: 'started', url, firstKey: firstKey ?? null }
    } else if (isUp && firstKey !== undefined) {
      yield { event: 'firstKey', firstKey }
    } else continue
    // Nobody waits for more than a key any more, and that there is once.
    text = ''
    firstKey = undefined
  }
  if (firstKey !== undefined) yield { event: 'firstKey', firstKey }
}
