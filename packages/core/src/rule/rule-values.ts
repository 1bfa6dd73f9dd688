import { SluiceError } from '../errors.ts'
import { numberAdvice, optionAdvice } from '../options/option-advice.ts'
import { MICROS_PER_UNIT } from './rate.ts'
import { expectedBucket, expectedWhole, LARGEST_UNITS } from './rule-options.ts'

// Reads the values of a rule's options, which may be anything.

/** A rule as it may come in from outside: any property, any value. */
export type Loose = Readonly<Record<string, unknown>>

/** An option that is itself an object of options. */
export function partOf(
  name: string,
  option: string,
  { value, known }: { value: unknown; known: readonly string[] },
): Loose {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(name, {
      problem: `has an unusable "${option}"`,
      received: value,
      expected: `an object of ${known.join(', ')}`,
    })
  }
  for (const part of Object.keys(value)) {
    if (known.includes(part)) continue
    throw invalid(name, {
      problem: `has "${part}" in "${option}", which is not known there`,
      expected: `only ${known.join(', ')}`,
      ...advised(optionAdvice(part, known)),
    })
  }
  return value as Loose
}

/** The capacity of a bucket in micro-units. Less than a unit would let no call through, and is taken for a mistake. */
export function microUnits(name: string, option: string, { value, most }: { value: unknown; most: number }): number {
  if (value === 0) return 0
  if (typeof value === 'number' && value >= 1 && value <= most) return Math.round(value * MICROS_PER_UNIT)
  throw invalid(name, {
    problem: `has an unusable "${option}"`,
    received: value,
    expected: `0, or ${expectedBucket(most)}`,
    ...advised(numberAdvice(option, value, Number.isFinite), 'Use 0 to deny all, or "off" not to limit.'),
  })
}

export function units(name: string, option: string, value: unknown): number {
  return whole(name, option, { value, least: 0, most: LARGEST_UNITS })
}

export function whole(
  name: string,
  option: string,
  { value, least, most }: { value: unknown; least: number; most: number },
): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(name, {
    problem: `has an unusable "${option}"`,
    received: value,
    expected: expectedWhole(least, most),
    ...advised(numberAdvice(option, value), least === 0 ? 'Use 0 to deny all, or "off" not to limit.' : undefined),
  })
}

/** The pieces of advice that there are, as a part of an error's details. */
export function advised(...pieces: readonly (string | undefined)[]): { action?: string } {
  const given = pieces.filter((piece) => piece !== undefined)
  return given.length === 0 ? {} : { action: given.join(' ') }
}

export function flag(name: string, option: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  throw invalid(name, { problem: `has an unusable "${option}"`, received: value, expected: 'true or false' })
}

export function invalid(
  name: string,
  details: { problem: string; received?: unknown; expected: string; action?: string },
): SluiceError {
  return new SluiceError('SLUICE_INVALID_RULE', { ...details, problem: `rule "${name}" ${details.problem}` })
}
