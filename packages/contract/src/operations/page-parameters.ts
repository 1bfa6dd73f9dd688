import type { TextSchema, WholeSchema } from '../schema/value-schemas.ts'
import type { OperationParameter } from './operation.ts'
import { query } from './operation.ts'

/** Which page of a list. */
export interface PageParameters {
  /** The `next` of the page before. */
  readonly after?: string
  /** Most items, 1 to 1000; 100 when left out. */
  readonly limit?: number
}

/** The parameters of {@link PageParameters}. */
export const PAGE_PARAMETERS: {
  readonly after: OperationParameter & { readonly required: false; readonly schema: TextSchema }
  readonly limit: OperationParameter & { readonly required: false; readonly schema: WholeSchema }
} = {
  after: query('The "next" of the page before; the first page when left out.', {
    type: 'string',
    minLength: 1,
    maxLength: 8192,
  }),
  limit: query('Most items; 100 when left out.', { type: 'integer', minimum: 1, maximum: 1000 }),
}
