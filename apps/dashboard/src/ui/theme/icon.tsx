import type { JSX } from 'preact'

/** Outlines on a grid of 16, drawn with a stroke. */
const OUTLINES = {
  overview: 'M2 13V9M6 13V4M10 13V7M14 13V2',
  decisions: 'M2 4h12M2 8h12M2 12h8',
  usage: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2.5 14c.6-2.8 2.7-4 5.5-4s4.9 1.2 5.5 4',
  explain: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM11 11l3 3M7 5v2.5M7 9.2v.1',
  rules: 'M3 4h6M12 4h1M3 8h1M7 8h6M3 12h4M10 12h3M10.5 2.5v3M5.5 6.5v3M8.5 10.5v3',
  playground: 'M2 12c2 0 2-8 4-8s2 8 4 8 2-5 4-5',
  gateway: 'M2 8h4M10 4h4M10 12h4M6 8c2 0 2-4 4-4M6 8c2 0 2 4 4 4',
  alerts: 'M8 2a4 4 0 0 0-4 4c0 4-1.5 5-1.5 5h11S12 10 12 6a4 4 0 0 0-4-4ZM6.5 13.5h3',
  nodes: 'M2.5 2.5h11v4h-11zM2.5 9.5h11v4h-11zM5 4.5h.1M5 11.5h.1',
  keys: 'M5.5 10.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8.5 7.5H14M12 7.5v2.5',
  audit: 'M3.5 2h9v12h-9zM6 5.5h4M6 8.5h4M6 11.5h2',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM11 11l3 3',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M4 4l8 8M12 4l-8 8',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5Z',
  display: 'M2 3h12v8H2zM6 14h4M8 11v3',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  warning: 'M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.1',
  up: 'M8 12V4M4.5 7.5L8 4l3.5 3.5',
  down: 'M8 4v8M4.5 8.5L8 12l3.5-3.5',
  right: 'M6 3.5L10.5 8 6 12.5',
  pause: 'M5.5 3v10M10.5 3v10',
  play: 'M5 3l8 5-8 5z',
  plus: 'M8 3v10M3 8h10',
  signOut: 'M9 3H3v10h6M7 8h7M11.5 5.5L14 8l-2.5 2.5',
  table: 'M2 3h12v10H2zM2 6.5h12M6.5 6.5V13',
  lock: 'M4 7h8v6.5H4zM5.5 7V5a2.5 2.5 0 0 1 5 0v2',
  copy: 'M5.5 5.5h8v8h-8zM2.5 10.5v-8h8',
  block: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM3.8 3.8l8.4 8.4',
} as const

/** The name of an icon. */
export type IconName = keyof typeof OUTLINES

/** An icon of 16 pixels. It is decoration: what it means is said in words beside it. */
export function Icon({ name, class: className }: { name: IconName; class?: string | undefined }): JSX.Element {
  return (
    <svg
      class={className}
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={OUTLINES[name]} />
    </svg>
  )
}
