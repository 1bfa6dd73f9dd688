import { describeValue, RuntimeError } from './errors.ts'
import { requireName } from './option-range.ts'

/** Something that needs others before it. */
export interface Dependent {
  /** Not empty, unique among the others. */
  readonly name: string
  /** The names of those that must come before. Default: none. Naming one twice means the same as once. */
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
