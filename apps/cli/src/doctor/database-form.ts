import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

/** The form of the tables that the service of this version makes. */
const CURRENT_FORM = 6

/** Whether the tables of a configuration database are of the form that this version makes; `form` is 0 for none. */
export function formFinding(check: string, form: number): Finding {
  if (form === CURRENT_FORM) return ok(check, `tables are of form ${form}, the newest`)
  if (form > CURRENT_FORM) {
    const found = `tables are of form ${form}, made by a newer version; this one knows up to ${CURRENT_FORM}`
    return failed(check, found, 'Upgrade the service on this machine, or use another database.')
  }
  const found = form === 0 ? 'there are no tables yet' : `tables are of form ${form}, the newest is ${CURRENT_FORM}`
  return warning(check, found, 'Nothing to do: the service makes them when it starts.')
}
