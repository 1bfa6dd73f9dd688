import { invalidFile, parseDocumentText } from '../documents/document.ts'

/** The one part of a rule set in a text of YAML or JSON, which has a name. `noun`: what it should be. */
export function namedDocument<T extends { readonly name: string }>(text: string, path: string, noun: string): T {
  const document = parseDocumentText(text, path)
  const isNamed = typeof document === 'object' && document !== null && 'name' in document
  if (isNamed && typeof document.name === 'string' && document.name !== '') return document as T
  throw invalidFile(path, `there is no "name" in it; expected one ${noun}, by the fields that a rule set has for it.`)
}
