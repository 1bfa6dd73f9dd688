import type { ReadonlySignal } from '@preact/signals'
import { computed, signal } from '@preact/signals'

/** Charts with this key show the crosshair at the same instant. */
export const CROSSHAIR_KEY = 'sluice'

const at = signal<number | undefined>(undefined)

/** The instant under the pointer in any chart, in milliseconds; undefined when it is over none. */
export const crosshairAtMs: ReadonlySignal<number | undefined> = at

/** Whether charts stand still, so that what is pointed at does not move away. Figures go on. */
export const isPaused: ReadonlySignal<boolean> = computed(() => at.value !== undefined)

/** Moves the crosshair; undefined when the pointer leaves. */
export function moveCrosshair(atMs: number | undefined): void {
  at.value = atMs
}
