import type { Finding } from './finding.ts'
import { failed, ok } from './finding.ts'

const OLDEST_MAJOR = 22

/** Whether the Node that runs this is new enough for the service. */
export function nodeFinding(version: string): Finding {
  const isNewEnough = Number.parseInt(version, 10) >= OLDEST_MAJOR
  if (isNewEnough) return ok('node', version)
  return failed('node', `${version}, expected ${OLDEST_MAJOR} or later`, 'Install a newer one from https://nodejs.org.')
}
