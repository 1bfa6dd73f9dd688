import type { NamedSchema, Reference } from './json-schema.ts'
import { answerSchema } from './json-schema.ts'
import { listOf, words } from './value-schemas.ts'

/** A part of a longer list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Give it back as `after` for the next page; absent on the last. */
  readonly next?: string
}

/** The schema of a page of what `item` describes, such as `example`. */
export function pageSchema<T>(name: string, item: Reference<T>, example: NoInfer<T>): NamedSchema<Page<T>> {
  return answerSchema<Page<T>>(name, {
    description: 'A part of a longer list.',
    examples: [{ items: [example], next: 'eyJhZnRlciI6MX0' }],
    required: { items: listOf('What is on this page.', item) },
    optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
  })
}
