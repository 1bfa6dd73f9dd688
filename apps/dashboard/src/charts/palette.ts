import { colourRevision } from '../ui/theme/theme.ts'

/** A colour token of a chart, such as `series-1`. */
export type ColourName = `series-${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 'other'}` | 'accent' | 'denied' | 'warning' | Shade

type Shade = 'grid' | 'text-muted' | 'line-strong'

const resolved = new Map<string, string>()
let resolvedRevision = -1

/** The value of a colour token in the current theme. Canvases know no custom properties. */
export function colourOf(name: ColourName): string {
  if (resolvedRevision !== colourRevision.peek()) {
    resolved.clear()
    resolvedRevision = colourRevision.peek()
  }
  const known = resolved.get(name)
  if (known !== undefined) return known
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  document.body.append(probe)
  const colour = getComputedStyle(probe).color
  probe.remove()
  resolved.set(name, colour)
  return colour
}

/** The same colour, see-through: `share` of 0 is invisible. */
export function faded(colour: string, share: number): string {
  return colour.replace(/^rgb\((.*)\)$/, (_, parts: string) => `rgba(${parts}, ${share})`)
}

const SERIES_COLOURS = [1, 2, 3, 4, 5, 6, 7, 8] as const

/** The colour of the series at a position; `other` always has the same. */
export function seriesColour(index: number, name: string): ColourName {
  return name === 'other' ? 'series-other' : `series-${SERIES_COLOURS[index % SERIES_COLOURS.length] ?? 1}`
}
