/** Something that is drawn once for each frame in which it changed. */
export interface Drawable {
  /** Whether it is in sight; what is not is drawn when it comes into sight. */
  isVisible(): boolean
  draw(): void
}

const waiting = new Set<Drawable>()
let isRequested = false

/**
 * Draws with the next frame of the browser. All charts share one frame request, so that ten updates a second of many
 * charts cost one pass each.
 */
export function requestDraw(drawable: Drawable): void {
  waiting.add(drawable)
  requestFrame()
}

/** Forgets what waits to be drawn, when it is removed from the page. */
export function cancelDraw(drawable: Drawable): void {
  waiting.delete(drawable)
}

function requestFrame(): void {
  if (isRequested) return
  isRequested = true
  requestAnimationFrame(drawAll)
}

function drawAll(): void {
  isRequested = false
  for (const drawable of [...waiting]) {
    if (!drawable.isVisible()) continue
    waiting.delete(drawable)
    drawable.draw()
  }
}

/** Follows whether elements are in sight; those that come into sight are drawn if they wait for it. */
export function watchVisibility(element: Element, onChange: (isVisible: boolean) => void): () => void {
  const observer = new IntersectionObserver((entries) => {
    onChange(entries.at(-1)?.isIntersecting ?? false)
    if (waiting.size > 0) requestFrame()
  })
  observer.observe(element)
  return () => observer.disconnect()
}
