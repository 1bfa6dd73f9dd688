import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Burst, BurstOutcome } from '../tests/test-bed.ts'
import type { Caller, CallersOptions } from './callers.ts'
import { Callers } from './callers.ts'
import type { ProcessAnswer, ProcessOrder, RedisSubject } from './race-process.ts'

/** How a pool works. */
export interface ProcessPoolOptions extends Omit<CallersOptions, 'noun'> {
  /** Number of processes, 1 or more. */
  readonly processes: number
}

// The sources run as they are, and as the compiler left them.
const EXTENSION = extname(import.meta.filename)
const PROCESS_FILE = fileURLToPath(new URL(`./race-process${EXTENSION}`, import.meta.url))
const NODE_FLAGS = EXTENSION === '.ts' ? ['--conditions=source', '--disable-warning=ExperimentalWarning'] : []

/**
 * Processes that are started once and make one burst after the other. One that fails or does not answer in time makes
 * the call reject; the pool can then only be closed. They end with this process, even when that is killed.
 */
export class ProcessPool {
  readonly #children: readonly ChildProcess[]
  readonly #callers: Callers<ProcessOrder>

  constructor({ processes, ...options }: ProcessPoolOptions) {
    this.#children = Array.from({ length: processes }, startChild)
    this.#callers = new Callers(this.#children.map(callerOf), { ...options, noun: 'processes' })
  }

  /** Gives every process a Redis and a rule to work on; they are connected when this resolves. */
  attach(subject: RedisSubject): Promise<void> {
    return this.#callers.order('attached', () => ({ kind: 'attach', subject }))
  }

  /**
   * Lets all processes make their share of the burst, all at the given instant of the clock that limits refill by. They
   * are released when the last one is ready, by a message to each: these go out one after the other, in far less time
   * than the requests of one process take.
   */
  burst(burst: Burst, atMicros: number): Promise<BurstOutcome> {
    return this.#callers.burst(burst, {
      prepare: (share) => ({ kind: 'burst', burst: share, atMicros }),
      release: () => this.#callers.send(() => ({ kind: 'go' })),
    })
  }

  /** Disconnects every process from Redis. */
  detach(): Promise<void> {
    return this.#callers.order('detached', () => ({ kind: 'detach' }))
  }

  /** Ends all processes, wherever they are. May be called again. */
  async close(): Promise<void> {
    await Promise.all(this.#children.map(endChild))
  }
}

function startChild(): ChildProcess {
  const child = fork(PROCESS_FILE, [], {
    execArgv: NODE_FLAGS,
    // As threads get their messages: a rule is not only what JSON can say.
    serialization: 'advanced',
    // Only the report goes to stdout.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // Without a listener the failure of a process would end this one; here its next reply fails.
  child.on('error', () => undefined)
  return child
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null
}

async function endChild(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

function callerOf(child: ChildProcess): Caller<ProcessOrder> {
  return {
    send: (order) => void child.send(order),
    nextReply: async (stuck) => {
      const ended = new AbortController()
      const onExit = (): void => ended.abort()
      child.once('exit', onExit)
      try {
        if (hasEnded(child)) throw endedError(child)
        const signal = AbortSignal.any([stuck, ended.signal])
        const [answer]: ProcessAnswer[] = await once(child, 'message', { signal })
        if (answer!.kind === 'failed') throw new Error(answer!.problem)
        return answer!
      } catch (error) {
        throw ended.signal.aborted ? endedError(child) : error
      } finally {
        child.off('exit', onExit)
      }
    },
  }
}

function endedError({ pid, exitCode, signalCode }: ChildProcess): Error {
  if (pid === undefined) return new Error('a process that could not be started')
  return new Error(`the end of process ${pid} (${signalCode ?? `exit code ${exitCode}`})`)
}
