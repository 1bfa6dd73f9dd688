/** What the service says when it is up. */
export interface Startup {
  readonly url: string
  /** The first API key, when it was just made. */
  readonly firstKey: string | null
}

const RUNNING = /^ +health +(https?:\S+)\/livez\b/m
const FIRST_KEY = /^ +(slk_\w+)\s*$/m
const COMPLETE = /^Try it:$/m

/** Reads what the service prints to its end; gives what it says when it is up, once. */
export async function* readStartup(output: AsyncIterable<string>): AsyncGenerator<Startup, void, void> {
  let text = ''
  let isTold = false
  for await (const piece of output) {
    if (isTold) continue
    text += piece
    const url = RUNNING.exec(text)?.[1]
    if (url === undefined || !COMPLETE.test(text)) continue
    isTold = true
    yield { url, firstKey: FIRST_KEY.exec(text)?.[1] ?? null }
  }
}
