import { canonicalPattern } from './resource-pattern.ts'

/** Resources whose canonical form is remembered: a million overrides name the same few. */
const MOST_REMEMBERED = 16_384

/** Gives the canonical spelling of patterns, and remembers it. For one thread. */
export class PatternSpellings {
  readonly #canonical = new Map<string, string>()

  /** The one spelling of all patterns that match the same as this one; the text itself when it is no pattern. */
  canonical(pattern: string): string {
    const known = this.#canonical.get(pattern)
    if (known !== undefined) return known
    const canonical = canonicalPattern(pattern)
    if (this.#canonical.size >= MOST_REMEMBERED) this.#canonical.clear()
    this.#canonical.set(pattern, canonical)
    return canonical
  }
}
