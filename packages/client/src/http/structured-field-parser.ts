/** A value of a structured field. */
export interface BareItem {
  readonly kind: 'string' | 'integer' | 'other'
  /** The decoded value, without quotes and escapes for a string. */
  readonly text: string
}

/** An item of a list, with its parameters by name. */
export interface FieldItem extends BareItem {
  readonly parameters: ReadonlyMap<string, BareItem>
}

const TRUE: BareItem = { kind: 'other', text: '?1' }

/** Forms of a value (RFC 9651 section 3.3). If several have the same start, the longer one comes first. */
const FORMS: readonly (readonly [kind: BareItem['kind'], form: RegExp])[] = [
  ['string', /"((?:[ !#-[\]-~]|\\["\\])*)"/y],
  ['other', /-?\d{1,12}\.\d{1,3}(?![\d.])/y],
  ['integer', /-?\d{1,15}(?![\d.])/y],
  ['other', /:[A-Za-z0-9+/]*={0,2}:/y],
  ['other', /\?[01]/y],
  ['other', /@-?\d{1,15}/y],
  ['other', /%"(?:[ !#$&-~]|%[0-9a-f]{2})*"/y],
  ['other', /[A-Za-z*][-!#$%&'*+.^_`|~:/\w]*/y],
]

const PARAMETER = /; *([a-z*][-a-z0-9_.*]*)(=)?/y
const COMMA = /[ \t]*,[ \t]*/y

/** Reads a string from left to right. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length
  }

  /** Consumes and returns the text that matches this form; undefined if there is none. */
  take(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at
    const found = form.exec(this.#text)
    if (found === null) return undefined
    this.#at += found[0].length
    return found
  }
}

/**
 * The items of a structured field that is a List of Items (RFC 9651); undefined if it is malformed anywhere: such a
 * field is ignored. Nested lists are malformed here. A repeated parameter has its last value.
 */
export function parseFieldList(text: string): readonly FieldItem[] | undefined {
  const reader = new Reader(text.trim())
  const items: FieldItem[] = []
  if (reader.isAtEnd) return items
  for (;;) {
    const item = takeItem(reader)
    if (item === undefined) return undefined
    items.push(item)
    if (reader.isAtEnd) return items
    if (reader.take(COMMA) === undefined) return undefined
  }
}

function takeItem(reader: Reader): FieldItem | undefined {
  const item = takeBare(reader)
  if (item === undefined) return undefined
  const parameters = new Map<string, BareItem>()
  for (let next = reader.take(PARAMETER); next !== undefined; next = reader.take(PARAMETER)) {
    const value = next[2] === undefined ? TRUE : takeBare(reader)
    if (value === undefined) return undefined
    parameters.set(next[1]!, value)
  }
  return { ...item, parameters }
}

function takeBare(reader: Reader): BareItem | undefined {
  for (const [kind, form] of FORMS) {
    const found = reader.take(form)
    if (found === undefined) continue
    return { kind, text: kind === 'string' ? found[1]!.replaceAll(/\\(["\\])/g, '$1') : found[0] }
  }
  return undefined
}
