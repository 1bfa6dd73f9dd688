/** A value with `*` in it; each stands for any characters, also for none. */
export class ValuePattern {
  readonly #first: string
  readonly #middle: readonly string[]
  readonly #last: string

  /** `text` has at least one `*`. */
  constructor(text: string) {
    const parts = text.split('*')
    this.#first = parts[0]!
    this.#middle = parts.slice(1, -1).filter((part) => part !== '')
    this.#last = parts.at(-1)!
  }

  /** Whether a value is one of those meant. Never tries twice: no value can make it slow. */
  matches(value: string): boolean {
    const end = value.length - this.#last.length
    let at = this.#first.length
    if (at > end || !value.startsWith(this.#first) || !value.endsWith(this.#last)) return false
    for (const part of this.#middle) {
      const found = value.indexOf(part, at)
      if (found < 0 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }
}
