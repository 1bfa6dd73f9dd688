import type { Override } from '@sluice/contract'
import { countText, pluralText } from '../../ui/theme/format.ts'

/** The numbers of an override, in words. */
export function termsText(terms: Override['terms']): string {
  const { limit, window, burst, windows, multiplier } = terms
  if (multiplier !== undefined) return `${multiplier} times the limit`
  if (windows !== undefined) return windows.map((spec) => limitText(spec.limit, spec.window)).join(' and ')
  if (limit === 'off') return 'no limit'
  const bursts = burst === undefined ? '' : ` in bursts of ${countText(burst)}`
  return `${limitText(limit ?? 0, window)}${bursts}`
}

function limitText(limit: number | 'off', window: unknown): string {
  if (window === undefined) return limit === 'off' ? 'no limit' : pluralText(limit, 'call')
  const amount = limit === 'off' ? 'no limit' : countText(limit)
  return `${amount} per ${typeof window === 'number' ? `${window} ms` : String(window)}`
}
