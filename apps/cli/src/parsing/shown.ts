const LONGEST_SHOWN = 64

/** What was typed, for a message: quoted, not too long, and never an API key. */
export function shown(text: string): string {
  if (text.includes('slk_')) return '(an API key, not shown)'
  return JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text)
}
