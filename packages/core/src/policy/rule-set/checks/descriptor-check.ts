import { describeValue } from '../schema/schema-node.ts'
import type { ProblemList, Properties } from './problem-list.ts'
import { objectsIn } from './problem-list.ts'

/** Checks what trees of descriptors mean, where their form is right. */
export function checkDomains(problems: ProblemList, domains: unknown, path: string): void {
  const seen = new Map<unknown, string>()
  for (const [domain, place] of objectsIn(domains, path)) {
    const { domain: name } = domain
    const first = seen.get(name)
    if (first === undefined) seen.set(name, place)
    else if (problems.isSound(`${place}/domain`)) {
      problems.add(`${place}/domain`, describeValue(name), `a name of its own: ${first} has it already`)
    }
    checkLevel(problems, domain['descriptors'], `${place}/descriptors`)
  }
}

/** Descriptors of one level, and all below. */
function checkLevel(problems: ProblemList, descriptors: unknown, path: string): void {
  if (problems.isWrong(path)) return
  const seen = new Map<string, string>()
  for (const [descriptor, place] of objectsIn(descriptors, path)) {
    // Below what is nested too deep nothing is known.
    if (problems.isWrong(place)) continue
    if (problems.isSound(`${place}/key`) && problems.isSound(`${place}/value`))
      checkSeen(problems, { descriptor, seen }, place)
    checkShare(problems, descriptor, place)
    checkReplaces(problems, descriptor['limit'], `${place}/limit`)
    checkLevel(problems, descriptor['descriptors'], `${place}/descriptors`)
  }
}

function checkSeen(
  problems: ProblemList,
  { descriptor, seen }: { readonly descriptor: Properties; readonly seen: Map<string, string> },
  path: string,
): void {
  // An empty value says as much as none.
  const { key, value = '' } = descriptor
  const entry = JSON.stringify([key, value])
  const first = seen.get(entry)
  if (first === undefined) seen.set(entry, path)
  else problems.add(path, `a second ${entry}`, `each key and value once at a level: ${first} has it already`)
}

function checkShare(problems: ProblemList, { shareThreshold, value = '' }: Properties, path: string): void {
  if (shareThreshold !== true || typeof value !== 'string' || value.includes('*')) return
  problems.add(`${path}/shareThreshold`, 'true', 'a "*" in "value": else there is nothing to share')
}

function checkReplaces(problems: ProblemList, limit: unknown, path: string): void {
  if (typeof limit !== 'object' || limit === null || !problems.isSound(path)) return
  const { name, replaces = [] } = limit as { name?: string; replaces?: readonly string[] }
  for (const [index, replaced] of replaces.entries()) {
    if (replaced !== name) continue
    problems.add(`${path}/replaces/${index}`, describeValue(replaced), 'the name of another limit, not its own')
  }
}
