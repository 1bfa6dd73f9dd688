import { usageError } from '../cli-error.ts'
import { shown } from '../parsing/shown.ts'

/** The number of a version, as it was typed. */
export function versionNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw usageError(`${shown(text)} is no version; expected a number such as 12. "sluice rules versions" lists all.`)
}
