const SPACE = /[ \t\r\n]*/y
const STRING = /"(?:[^"\\\p{Cc}]|\x7f|[\x80-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy
const PLAIN = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y

/** The offset of the first JSON syntax error; undefined for valid JSON. `JSON.parse` does not always report it. */
export function jsonErrorOffset(text: string): number | undefined {
  const scan = new JsonScanner(text)
  if (scan.value() && scan.at === text.length) return undefined
  return scan.at
}

class JsonScanner {
  readonly #text: string
  at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** A value and the whitespace around it. On false, `at` is the offset of the error. */
  value(): boolean {
    this.#take(SPACE)
    const first = this.#text[this.at]
    const isInside = first === '[' || first === '{'
    const isValue = isInside ? this.#collection(first) : this.#take(STRING) || this.#take(PLAIN)
    if (isValue) this.#take(SPACE)
    return isValue
  }

  #collection(opening: '[' | '{'): boolean {
    const closing = opening === '[' ? ']' : '}'
    this.at++
    this.#take(SPACE)
    if (this.#takeText(closing)) return true
    do {
      if (opening === '{' && !this.#name()) return false
      if (!this.value()) return false
    } while (this.#takeText(','))
    return this.#takeText(closing)
  }

  #name(): boolean {
    this.#take(SPACE)
    if (!this.#take(STRING)) return false
    this.#take(SPACE)
    return this.#takeText(':')
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at
    if (!pattern.test(this.#text)) return false
    this.at = pattern.lastIndex
    return true
  }

  #takeText(text: string): boolean {
    if (!this.#text.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }
}
