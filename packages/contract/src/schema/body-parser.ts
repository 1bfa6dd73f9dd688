import type { JsonSchema, NamedSchema } from './json-schema.ts'
import type { FieldProblem } from './value-schemas.ts'

/** The valid values of one field of a body. */
export interface Field {
  readonly accepts: (value: unknown) => boolean
  readonly expected: string
  /** Whether the value may be a secret or name a person: then messages never contain it. */
  readonly isPrivate: boolean
  /** Locates problems within a value that has parts. Default: the whole field is the problem. */
  readonly problemsIn?: (value: object, path: string) => readonly FieldProblem[]
}

declare const BODY: unique symbol

/** The valid bodies of an operation. */
export interface BodyForm<T extends object = object> {
  /** The type of the bodies of this form; only the compiler uses it. */
  readonly [BODY]?: T
  readonly fields: ReadonlyMap<string, Field>
  /** Required fields. */
  readonly needed: readonly string[]
  /** Description of the body, for values that are something else. */
  readonly expected: string
  /** Problems that concern several fields; `at` points to the body. Empty if there are none. */
  readonly problemsBetween?: (body: object, at: string) => readonly FieldProblem[]
}

/** What a parser needs beyond the schema of a body. */
export interface BodyRules {
  /** Fields whose problems are listed first. */
  readonly first?: readonly string[]
  /** Fields that may be a secret or name a person. */
  readonly private?: readonly string[]
  /** Fields that a schema alone does not describe. */
  readonly fields?: Readonly<Record<string, Field>>
  readonly problemsBetween?: BodyForm['problemsBetween']
}

/** An invalid body, and its problems. */
export interface InvalidBody {
  readonly ok: false
  /** At least one. All problems of known fields, then as many of unknown ones as fit. */
  readonly problems: readonly FieldProblem[]
  /** Number of further problems: a body can have thousands. */
  readonly unlisted: number
}

/** A parsed body, or its problems. */
export type Parsed<T> = ({ readonly ok: true } & T) | InvalidBody

const MOST_UNKNOWN_LISTED = 16

/** Maximum number of listed problems of the entries of a list; the others are counted. */
const MOST_LISTED_OF_ENTRIES = 64

const MOST_DESCRIPTORS = 32
const LONGEST_DESCRIPTOR = 512

const CONTROL_CHARACTER = /\p{Cc}/u
/** The range of printable ASCII characters: most strings contain no others. */
const SPACE = 0x20
const TILDE = 0x7e
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]{1,32}$/
const DESCRIPTOR_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const ENTRY_NAME = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$/

/**
 * The form of the bodies that `schema` describes. Names, required fields, bounds and choices are those of the schema.
 * `expected` describes the body, for values that are something else.
 */
/* @__NO_SIDE_EFFECTS__ */
export function bodyForm<T extends object>(
  { schema }: NamedSchema<T>,
  expected: string,
  rules: BodyRules,
): BodyForm<T> {
  const { first = [], private: secrets = [], fields = {}, problemsBetween } = rules
  const { properties = {} } = schema
  const names = new Set([...first.filter((name) => Object.hasOwn(properties, name)), ...Object.keys(properties)])
  const entries = [...names].map((name): [string, Field] => {
    const field = fields[name] ?? fieldOf(properties[name]!)
    return [name, secrets.includes(name) ? { ...field, isPrivate: true } : field]
  })
  const form = { fields: new Map(entries), needed: schema.required ?? [], expected }
  return problemsBetween === undefined ? form : { ...form, problemsBetween }
}

/** The same form without one of its optional fields. */
/* @__NO_SIDE_EFFECTS__ */
export function formWithout<T extends object>(form: BodyForm<T>, name: string): BodyForm<T> {
  return { ...form, fields: new Map([...form.fields].filter(([field]) => field !== name)) }
}

/** The field for a schema: a boolean, an integer, a choice of strings, or a string. */
function fieldOf({ type, minimum = 0, maximum = Number.MAX_SAFE_INTEGER, maxLength = 0, ...more }: JsonSchema): Field {
  if (type === 'boolean') return FLAG_FIELD
  if (type === 'integer') return wholeField(minimum, maximum)
  return more.enum === undefined ? textField(maxLength) : choiceField(more.enum)
}

/** Whether `body` is an object of this form. Visits each member once: most bodies are valid. */
export function hasForm<T extends object>(body: unknown, { fields, needed, problemsBetween }: BodyForm<T>): body is T {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false
  for (const name of Object.keys(body)) {
    if (fields.get(name)?.accepts((body as Record<string, unknown>)[name]) !== true) return false
  }
  for (const name of needed) if (!Object.hasOwn(body, name)) return false
  return problemsBetween === undefined || problemsBetween(body, '').length === 0
}

/** The problems of a body that does not have this form; `at` points to it. */
export function formProblems(body: unknown, form: BodyForm, at = ''): InvalidBody {
  const { fields, needed, expected, problemsBetween } = form
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { ok: false, problems: [{ path: at, received: describeReceived(body, true), expected }], unlisted: 0 }
  }
  const values = new Map<string, unknown>(Object.entries(body))
  const problems: FieldProblem[] = []
  for (const [name, field] of fields) {
    const isWrong = values.has(name) ? !field.accepts(values.get(name)) : needed.includes(name)
    if (isWrong) problems.push(...fieldProblems(field, values.get(name), at + pointerTo(name)))
  }
  if (problemsBetween !== undefined) problems.push(...problemsBetween(body, at))
  const unknown = [...values.keys()].filter((name) => !fields.has(name))
  for (const name of unknown.slice(0, MOST_UNKNOWN_LISTED)) {
    const known = `only ${[...fields.keys()].join(', ')}`
    problems.push({ path: at + pointerTo(name), received: 'an unknown field', expected: known })
  }
  return { ok: false, problems, unlisted: Math.max(0, unknown.length - MOST_UNKNOWN_LISTED) }
}

/**
 * The problems of a list whose entries should all have this form, up to the maximum; undefined if there are none. `at`
 * points to the list.
 */
export function entryProblems(entries: readonly unknown[], form: BodyForm, at: string): InvalidBody | undefined {
  const problems: FieldProblem[] = []
  let unlisted = 0
  for (const [index, entry] of entries.entries()) {
    if (hasForm(entry, form)) continue
    const found = formProblems(entry, form, `${at}/${index}`)
    const room = MOST_LISTED_OF_ENTRIES - problems.length
    problems.push(...found.problems.slice(0, room))
    unlisted += found.unlisted + Math.max(0, found.problems.length - room)
  }
  return problems.length === 0 ? undefined : { ok: false, problems, unlisted }
}

function fieldProblems(field: Field, value: unknown, path: string): readonly FieldProblem[] {
  const parts = typeof value === 'object' && value !== null ? (field.problemsIn?.(value, path) ?? []) : []
  if (parts.length > 0) return parts
  return [{ path, received: describeReceived(value, field.isPrivate), expected: field.expected }]
}

/** A string of 1 to `longest` characters. */
/* @__NO_SIDE_EFFECTS__ */
function textField(longest: number): Field {
  return {
    accepts: (value) => isText(value, longest),
    expected: `a string of 1 to ${longest} characters and no control characters`,
    isPrivate: false,
  }
}

/** An integer in a range. */
/* @__NO_SIDE_EFFECTS__ */
function wholeField(minimum: number, maximum: number): Field {
  return {
    accepts: (value) => Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
    expected: `a whole number from ${minimum} to ${maximum}`,
    isPrivate: false,
  }
}

/** True or false. */
const FLAG_FIELD: Field = {
  accepts: (value) => typeof value === 'boolean',
  expected: 'true or false',
  isPrivate: false,
}

/**
 * A list of 1 to `most` entries, called `noun` in messages. `form` is the form of each; without it, {@link
 * entryProblems} checks them.
 */
/* @__NO_SIDE_EFFECTS__ */
export function listField(most: number, noun: string, form?: BodyForm): Field {
  const isList = (value: unknown): value is readonly unknown[] =>
    Array.isArray(value) && value.length > 0 && value.length <= most
  const list = { accepts: isList, expected: `a list of 1 to ${most} ${noun}`, isPrivate: false }
  if (form === undefined) return list
  return {
    ...list,
    accepts: (value) => isList(value) && value.every((entry) => hasForm(entry, form)),
    problemsIn: (value, path) => (isList(value) ? (entryProblems(value, form, path)?.problems ?? []) : []),
  }
}

/** A choice of strings. */
/* @__NO_SIDE_EFFECTS__ */
function choiceField(choices: readonly string[]): Field {
  return {
    accepts: (value) => choices.includes(value as string),
    expected: `one of ${choices.join(', ')}`,
    isPrivate: false,
  }
}

/** A string with a minimum length. */
/* @__NO_SIDE_EFFECTS__ */
export function plainTextField(least: number, isPrivate: boolean): Field {
  return {
    accepts: (value) => typeof value === 'string' && value.length >= least && value.isWellFormed(),
    expected: least === 0 ? 'a string' : `a string of ${least} or more characters`,
    isPrivate,
  }
}

/** An object with a form. */
/* @__NO_SIDE_EFFECTS__ */
export function formField(form: BodyForm): Field {
  return {
    accepts: (value) => hasForm(value, form),
    expected: form.expected,
    isPrivate: true,
    problemsIn: (value, path) => formProblems(value, form, path).problems,
  }
}

/** The address of a caller. */
export const IP_FIELD: Field = {
  accepts: (value) => typeof value === 'string' && isIpAddress(value),
  expected: 'an IPv4 or IPv6 address without port, brackets or zone',
  isPrivate: true,
}

/** A resource. A string that contains a slash but does not start with one is a mistake: a path without its start. */
export const RESOURCE_FIELD: Field = {
  accepts: (value) => isText(value, 2048) && (value.startsWith('/') || !value.includes('/')),
  expected:
    'a path that begins with "/", a name without "/", or "*", of at most 2048 characters and no control characters',
  isPrivate: false,
}

/** An HTTP method. */
export const METHOD_FIELD: Field = {
  // A comparison takes a tenth of the time of a regular expression, and nearly all methods are one of these.
  accepts: (value) => value === 'GET' || value === 'POST' || (typeof value === 'string' && METHOD.test(value)),
  expected: 'an HTTP method such as "GET", of at most 32 characters',
  isPrivate: false,
}

/** The name of a tier. */
export const TIER_FIELD: Field = {
  accepts: (value) => typeof value === 'string' && ENTRY_NAME.test(value),
  expected: '1 to 64 letters, digits or any of _ . @ -, beginning with a letter or digit',
  isPrivate: false,
}

/** Further dimensions and numbers, by name. */
export const DESCRIPTORS_FIELD: Field = {
  accepts: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const entries = Object.entries(value)
    return entries.length <= MOST_DESCRIPTORS && entries.every(([name, part]) => isDescriptor(name, part))
  },
  expected: `an object of at most ${MOST_DESCRIPTORS} descriptors, by name`,
  isPrivate: true,
  problemsIn: (value, path) =>
    Array.isArray(value) || Object.keys(value).length > MOST_DESCRIPTORS ? [] : descriptorProblems(value, path),
}

function isDescriptor(name: string, value: unknown): boolean {
  return (
    DESCRIPTOR_NAME.test(name) &&
    (typeof value === 'number' ? Number.isFinite(value) : isText(value, LONGEST_DESCRIPTOR))
  )
}

function descriptorProblems(descriptors: object, path: string): readonly FieldProblem[] {
  return Object.entries(descriptors)
    .filter(([name, value]) => !isDescriptor(name, value))
    .map(([name, value]) => ({
      path: path + pointerTo(name),
      received: DESCRIPTOR_NAME.test(name) ? describeReceived(value, true) : 'a name that descriptors cannot have',
      expected: DESCRIPTOR_NAME.test(name)
        ? `a number, or a string of 1 to ${LONGEST_DESCRIPTOR} characters and no control characters`
        : 'a name of 1 to 64 letters, digits or any of _ . -, beginning with a letter',
    }))
}

/**
 * Control characters would break log lines. A lone surrogate has no UTF-8 form: a store would turn it into U+FFFD, and
 * two callers would share a counter.
 */
function isText(value: unknown, longest: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > longest) return false
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index)
    if (code < SPACE || code > TILDE) return value.isWellFormed() && !CONTROL_CHARACTER.test(value)
  }
  return true
}

const LONGEST_SHOWN = 64

/** The pointer to a member of the body. Long names are cut: clients choose them, and they end up in logs. */
function pointerTo(name: string): string {
  const shown = name.length > LONGEST_SHOWN ? `${name.slice(0, LONGEST_SHOWN)}...` : name
  return `/${shown.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/**
 * Describes a value. Strings are quoted if they are short and `isPrivate` is false; otherwise only their length is
 * given.
 */
function describeReceived(value: unknown, isPrivate: boolean): string {
  if (typeof value === 'string') {
    if (value.length === 0) return 'an empty string'
    return isPrivate || value.length > LONGEST_SHOWN ? `a string of ${value.length} characters` : JSON.stringify(value)
  }
  if (value === undefined) return 'nothing'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}

const IPV6_GROUP = /^[\dA-Fa-f]{1,4}$/
const LONGEST_IPV6 = 45
const IPV6_GROUPS = 8

/**
 * Whether `text` is one IPv4 address in dotted decimal without leading zeros, or one IPv6 address (RFC 4291; the last
 * 32 bits may be dotted decimal). No port, prefix length, brackets, zone or spaces.
 */
export function isIpAddress(text: string): boolean {
  return isIpv4(text) || isIpv6(text)
}

const DOT = 0x2e
const ZERO = 0x30
const LONGEST_IPV4 = 15

/** Hand-written: most checks contain an address, and a regular expression takes several times as long. */
function isIpv4(text: string): boolean {
  if (text.length > LONGEST_IPV4) return false
  let dots = 0
  let digits = 0
  let value = 0
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - ZERO
    if (digit >= 0 && digit <= 9) {
      // No leading zeros.
      if (digits > 0 && value === 0) return false
      value = 10 * value + digit
      if (value > 255) return false
      digits++
    } else if (digit + ZERO === DOT && digits > 0) {
      dots++
      digits = 0
      value = 0
    } else return false
  }
  return dots === 3 && digits > 0
}

function isIpv6(text: string): boolean {
  if (text.length > LONGEST_IPV6) return false
  const [head = '', tail, ...more] = text.split('::')
  if (more.length > 0) return false
  const groupsOfTail = tail === undefined ? 0 : countGroups(tail, true)
  const groups = countGroups(head, tail === undefined) + groupsOfTail
  // `::` stands for at least one group.
  return tail === undefined ? groups === IPV6_GROUPS : groups < IPV6_GROUPS
}

/** Number of 16-bit groups in `part`, NaN if one is malformed. `isEnd`: dotted decimal may come last, as two groups. */
function countGroups(part: string, isEnd: boolean): number {
  if (part === '') return 0
  const groups = part.split(':')
  const last = groups.at(-1) ?? ''
  const hasIpv4 = isEnd && isIpv4(last)
  const plain = hasIpv4 ? groups.slice(0, -1) : groups
  if (!plain.every((group) => IPV6_GROUP.test(group))) return Number.NaN
  return plain.length + (hasIpv4 ? 2 : 0)
}
