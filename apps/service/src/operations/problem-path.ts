import type { RuleSetProblem } from '@sluice/core'

/** Turns a place in a rule set or list into the one in the body of the request; undefined for what the body does not have. */
export type PlaceOf = (path: string) => string | undefined

/** A place in a rule set as the texts of problems name it; what is between quotes is somebody's resource or name. */
const PLACE = /(?<![\w"/.])\/(?:rules|tiers|exemptions|denyList|domains)\/\d+(?:\/\w+)*/g

/** A problem with all places in it as they are in the body. What the body does not have is said to be in the enforced rules. */
export function placedProblem(problem: RuleSetProblem, placeOf: PlaceOf): RuleSetProblem {
  const retold = (text: string): string => text.replaceAll(PLACE, (place) => placeOf(place) ?? elsewhere(place))
  const path = placeOf(problem.path)
  const received = retold(problem.received)
  return {
    ...problem,
    path: path ?? '',
    received: path === undefined ? `${received}, at ${elsewhere(problem.path)}` : received,
    expected: retold(problem.expected),
  }
}

function elsewhere(place: string): string {
  return `${place} of the enforced rules`
}
