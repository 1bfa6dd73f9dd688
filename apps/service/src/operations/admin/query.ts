import { invalidRequest } from '../problems.ts'

/** A parameter that must be there. */
export function textOf(query: URLSearchParams, name: string): string {
  const value = query.get(name)
  if (value !== null && value !== '') return value
  throw invalidRequest({ path: `?${name}`, received: value === null ? 'missing' : 'empty', expected: 'a text' })
}

/** The parameters of these names that are there. */
export function textsOf<N extends string>(query: URLSearchParams, names: readonly N[]): { readonly [K in N]?: string } {
  const found = names.flatMap((name) => {
    const value = query.get(name)
    return value === null ? [] : [[name, value]]
  })
  return Object.fromEntries(found)
}

/** A parameter that is a whole number, 0 or more; undefined when it is not there. */
export function numberOf(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  return value === null ? undefined : wholeNumber(value, `?${name}`)
}

/** A text as a whole number, 0 or more. `path`: where it stands. */
export function wholeNumber(text: string, path: string): number {
  const number = Number(text)
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(number)) return number
  throw invalidRequest({ path, received: JSON.stringify(text.slice(0, 40)), expected: 'a whole number, 0 or more' })
}
