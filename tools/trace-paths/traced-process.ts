import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ToolError } from '../tool-error.ts'
import { repositoryRoot } from '../workspace.ts'
import type { CalledFunctions } from './coverage.ts'

const AGENT = join(import.meta.dirname, 'coverage-agent.ts')
const FLAGS = ['--conditions=source', '--disable-warning=ExperimentalWarning', '--import', AGENT]

type Message =
  | { readonly event: 'firstKey'; readonly firstKey: string }
  | { readonly event: 'started'; readonly url: string }
  | { readonly event: 'called'; readonly called: readonly (readonly [string, readonly string[]])[] }

/** A service whose calls of functions are counted. */
export interface TracedProcess {
  readonly url: string
  readonly firstKey: string
  /** The functions that were called since the last time. */
  take(): Promise<CalledFunctions>
  stop(): Promise<void>
}

/** Starts a service on this machine; resolves when it listens. */
export function startTraced(args: readonly string[]): Promise<TracedProcess> {
  const child = spawn(process.execPath, [...FLAGS, join(repositoryRoot, 'apps/service/src/main.ts'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const taken: ((called: CalledFunctions) => void)[] = []
  const take = (): Promise<CalledFunctions> =>
    new Promise((resolve) => {
      taken.push(resolve)
      child.send('take')
    })
  const stop = async (): Promise<void> => {
    // Nothing of it is kept, so it need not end in order.
    child.kill('SIGKILL')
    await ended
  }
  return new Promise((resolve, reject) => {
    let firstKey = ''
    child.on('message', (message: Message) => {
      if (message.event === 'firstKey') firstKey = message.firstKey
      if (message.event === 'started') resolve({ url: message.url, firstKey, take, stop })
      if (message.event === 'called') taken.shift()?.(new Map(message.called))
    })
    void ended.then((code) => reject(new ToolError('TRACE_FAILED', `The service ended with code ${code}.`)))
  })
}
