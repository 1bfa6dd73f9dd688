import { requireKnown, requireName } from './option-range.ts'
import { describeValue, RuntimeAggregateError, RuntimeError } from './runtime-error.ts'

/** One part of a process: a connection, a server, a worker. */
export interface StartupPart extends Dependent {
  /** Resolves when dependent parts may start. If it fails, it has cleaned up after itself. */
  readonly start?: (() => void | PromiseLike<void>) | undefined
  /** Resolves when the part is stopped completely. Called only after `start` succeeded, and once. */
  readonly stop?: (() => void | PromiseLike<void>) | undefined
}

const PART_FIELDS = ['name', 'dependsOn', 'start', 'stop'] as const satisfies readonly (keyof StartupPart)[]

type State = 'new' | 'starting' | 'started' | 'stopped'

/**
 * Starts the parts of a process in the order of their dependencies and stops them in reverse.
 *
 * Parts that do not need each other start together, level by level (see {@link startupLevels}); a level begins when
 * the one before it has started completely. Stopping goes through the levels backwards, and the parts of one level
 * stop together, called in reverse order.
 *
 * A graph runs once: new -> starting -> started -> stopped, or from any of them straight to stopped (a failed start,
 * a stop that came early). The constructor checks fields, names, dependencies and cycles before anything is started.
 */
export class StartupGraph {
  /** Names of the parts in startup order; those of one inner list start together. */
  readonly levels: readonly (readonly string[])[]
  readonly #levels: readonly (readonly StartupPart[])[]
  #state: State = 'new'
  /** Running parts, by level. */
  readonly #running: StartupPart[][] = []
  #starting: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | undefined

  constructor(parts: readonly StartupPart[]) {
    // An instance of a class may have fields of its own.
    for (const part of parts) if (Object.getPrototypeOf(part) === Object.prototype) requireKnown(part, PART_FIELDS)
    this.#levels = startupLevels(parts)
    this.levels = this.#levels.map((level) => level.map((part) => part.name))
  }

  /**
   * Starts all parts; resolves when all have started.
   *
   * When a part fails, the rest of its level is waited for, all that have started are stopped in reverse, and it
   * rejects with `SLUICE_RUNTIME_PART_START_FAILED`, which names the part and has its error as `cause`; what else
   * failed, in the same level or in stopping, is in `alsoFailed`. Rejects with `SLUICE_RUNTIME_GRAPH_INTERRUPTED`
   * when `stop` was called meanwhile, and with `SLUICE_RUNTIME_GRAPH_ALREADY_STARTED` on every call but the first.
   */
  async start(): Promise<void> {
    if (this.#state !== 'new') throw alreadyStarted(this.#state)
    this.#state = 'starting'
    this.#starting = this.#startLevels()
    await this.#starting
  }

  /**
   * Stops all parts that have started, in reverse; resolves when none is left. During a start it waits for the level
   * that is being started, and no further level begins. A part must therefore not wait for it within its own `start`.
   *
   * A part that fails does not keep the others from being stopped; at the end it rejects with an `AggregateError` of
   * code `SLUICE_RUNTIME_STOP_FAILED` that has one error per failed part. Further calls do nothing and give the
   * outcome of the first.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopOnce()
    return this.#stopping
  }

  /** The same as {@link StartupGraph.stop}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #startLevels(): Promise<void> {
    for (const level of this.#levels) {
      if (this.#stopping !== undefined) break
      const failures = await this.#startLevel(level)
      const [first, ...others] = failures
      if (first !== undefined) {
        const stopFailures = await this.#stopRunning()
        this.#state = 'stopped'
        throw startFailed(first, [...others.map((other) => startFailed(other)), ...stopFailures])
      }
    }
    if (this.#stopping !== undefined) throw interrupted()
    this.#state = 'started'
  }

  async #startLevel(level: readonly StartupPart[]): Promise<PartFailure[]> {
    // An async function turns a synchronous exception into a rejection.
    const results = await Promise.allSettled(level.map(async (part) => part.start?.()))
    const failures: PartFailure[] = []
    const started: StartupPart[] = []
    for (const [index, part] of level.entries()) {
      const result = results[index]
      if (result?.status === 'rejected') failures.push({ name: part.name, cause: result.reason })
      else started.push(part)
    }
    this.#running.push(started)
    return failures
  }

  async #stopOnce(): Promise<void> {
    const wasStarting = this.#state === 'starting'
    this.#state = 'stopped'
    // The caller of start() gets its error; here it only matters that it has ended.
    if (wasStarting) await Promise.allSettled([this.#starting])
    const failures = await this.#stopRunning()
    if (failures.length > 0) throw stopFailed(failures)
  }

  async #stopRunning(): Promise<RuntimeError[]> {
    const failures: RuntimeError[] = []
    for (let level = this.#running.pop(); level !== undefined; level = this.#running.pop()) {
      const parts = level.toReversed()
      const results = await Promise.allSettled(parts.map(async (part) => part.stop?.()))
      for (const [index, part] of parts.entries()) {
        const result = results[index]
        if (result?.status === 'rejected') failures.push(partStopFailed({ name: part.name, cause: result.reason }))
      }
    }
    return failures
  }
}

interface PartFailure {
  readonly name: string
  readonly cause: unknown
}

function startFailed({ name, cause }: PartFailure, alsoFailed: readonly RuntimeError[] = []): RuntimeError {
  const others = alsoFailed.length === 0 ? '' : ` ${alsoFailed.length} more failed: see alsoFailed.`
  return new RuntimeError('SLUICE_RUNTIME_PART_START_FAILED', {
    received: `a failure of part ${describeValue(name)} (${messageOf(cause)})`,
    expected: 'its start() to succeed',
    action: `See the cause; what had started has been stopped again.${others}`,
    cause,
    alsoFailed,
  })
}

function partStopFailed({ name, cause }: PartFailure): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_PART_STOP_FAILED', {
    received: `a failure of part ${describeValue(name)} (${messageOf(cause)})`,
    expected: 'its stop() to succeed',
    action: 'See the cause; the part may still hold something.',
    cause,
  })
}

function stopFailed(failures: readonly RuntimeError[]): RuntimeAggregateError {
  return new RuntimeAggregateError('SLUICE_RUNTIME_STOP_FAILED', failures, {
    received: failures.map((failure) => failure.received).join(', '),
    expected: 'every stop() to succeed',
    action: 'See errors; all other parts have been stopped.',
  })
}

function alreadyStarted(state: State): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_GRAPH_ALREADY_STARTED', {
    received: `start() on a graph that is ${state}`,
    expected: 'one start() on a new graph',
    action: 'Make a new graph to start the parts again.',
  })
}

function interrupted(): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_GRAPH_INTERRUPTED', {
    received: 'stop() while parts were starting',
    expected: 'start() to finish first',
    action: 'Nothing, when the process is meant to end; stop() says how the stopping went.',
  })
}

function messageOf(cause: unknown): string {
  const hasMessage = typeof cause === 'object' && cause !== null && 'message' in cause
  return hasMessage ? String(cause.message) : describeValue(cause)
}

/** A part with dependencies. */
export interface Dependent {
  /** Not empty, unique. */
  readonly name: string
  /** Names of the parts that must start before. Duplicates are ignored. Default: none. */
  readonly dependsOn?: readonly string[] | undefined
}

/**
 * Sorts `parts` into levels by Kahn's algorithm, in time linear in parts and dependencies: everything that a part
 * depends on is in an earlier level, and every part is in the earliest level possible. Parts of one level do not need
 * each other and keep the order in which they were given.
 *
 * Throws `SLUICE_RUNTIME_GRAPH_DUPLICATE_PART`, `SLUICE_RUNTIME_GRAPH_UNKNOWN_DEPENDENCY`, or
 * `SLUICE_RUNTIME_GRAPH_CYCLE` with the path of one cycle (`a -> b -> a`: a depends on b, which depends on a).
 */
export function startupLevels<Part extends Dependent>(parts: readonly Part[]): Part[][] {
  const byName = indexByName(parts)
  const waitingFor = new Map<string, number>()
  const dependents = new Map<string, Part[]>(parts.map((part) => [part.name, []]))
  for (const part of parts) {
    const dependencies = new Set(part.dependsOn)
    waitingFor.set(part.name, dependencies.size)
    for (const name of dependencies) {
      const waiting = dependents.get(name)
      if (waiting === undefined) throw unknownDependency(part.name, name, [...byName.keys()])
      waiting.push(part)
    }
  }
  const position = new Map(parts.map((part, index) => [part, index]))
  const levels: Part[][] = []
  let level = parts.filter((part) => waitingFor.get(part.name) === 0)
  while (level.length > 0) {
    levels.push(level)
    for (const done of level) waitingFor.delete(done.name)
    const waiting = level.flatMap((done) => dependents.get(done.name) ?? [])
    const freed = waiting.filter((part) => countDown(part, waitingFor))
    level = freed.sort((a, b) => (position.get(a) ?? 0) - (position.get(b) ?? 0))
  }
  if (waitingFor.size > 0) throw cycleError(cyclePath(byName, waitingFor))
  return levels
}

/** Takes one off what `part` waits for; true when nothing is left. */
function countDown(part: Dependent, waitingFor: Map<string, number>): boolean {
  const left = (waitingFor.get(part.name) ?? 0) - 1
  waitingFor.set(part.name, left)
  return left === 0
}

function indexByName<Part extends Dependent>(parts: readonly Part[]): Map<string, Part> {
  const byName = new Map<string, Part>()
  for (const part of parts) {
    requireName('part name', part.name)
    if (byName.has(part.name)) {
      throw new RuntimeError('SLUICE_RUNTIME_GRAPH_DUPLICATE_PART', {
        received: `part ${describeValue(part.name)} twice`,
        expected: 'a different name for every part',
        action: 'Rename one of the two parts.',
      })
    }
    byName.set(part.name, part)
  }
  return byName
}

/**
 * Follows dependencies among the parts that Kahn's algorithm left over. Each of those waits for another of them, so
 * the walk never ends by itself and must come to a part for the second time: from there on it is a cycle.
 */
function cyclePath(byName: ReadonlyMap<string, Dependent>, leftOver: ReadonlyMap<string, number>): string[] {
  const walked: string[] = []
  const seen = new Set<string>()
  let name = leftOver.keys().next().value as string
  while (!seen.has(name)) {
    seen.add(name)
    walked.push(name)
    name = byName.get(name)?.dependsOn?.find((dependency) => leftOver.has(dependency)) as string
  }
  return [...walked.slice(walked.indexOf(name)), name]
}

function cycleError(path: readonly string[]): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_GRAPH_CYCLE', {
    received: path.join(' -> '),
    expected: 'dependencies that end somewhere',
    action: 'Remove one of these dependencies, or move what both sides need into a part of its own.',
  })
}

function unknownDependency(part: string, dependency: string, known: readonly string[]): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_GRAPH_UNKNOWN_DEPENDENCY', {
    received: `part ${describeValue(part)} depending on ${describeValue(dependency)}`,
    expected: `one of ${known.map(describeValue).join(', ')}`,
    action: 'Correct the name, or add the missing part.',
  })
}
