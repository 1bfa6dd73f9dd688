import { describe, expect, it } from 'vitest'
import { documentedTypes } from './documented-types.ts'

const CONTRACT = {
  SCHEMAS: {
    Part: { description: 'A part.', properties: { size: { description: 'How large.' } } },
    Thing: {
      description: 'A thing.',
      properties: {
        name: { description: 'Any string but */.' },
        part: { $ref: '#/components/schemas/Part' },
        made: { $ref: '#/components/schemas/Part', description: 'What it is made of.' },
        parts: { properties: { size: { description: 'Not of the thing.' } } },
      },
    },
  },
  OPERATIONS: {
    find: { description: 'Finds a thing.', parameters: { name: { description: 'Its name.' } } },
    list: { description: 'Lists things.', parameters: {} },
  },
}

const TYPES = `declare const PART: NamedSchema<{
    readonly size: number;
}, "Part">;
export declare const THING: import("../schema/json-schema.ts").NamedSchema<{
    readonly name: string;
    readonly part?: Part;
    readonly made: Part;
    readonly parts: {
        readonly size: number;
    };
}, "Thing">;
export interface Thing extends Infer<typeof THING> {
}
export interface Other {
    readonly name: string;
}
`

describe('documentedTypes', () => {
  it('puts the descriptions of a schema on the type that is inferred from it', () => {
    expect(documentedTypes(TYPES, CONTRACT)).toBe(`declare const PART: NamedSchema<{
    /** How large. */
    readonly size: number;
}, "Part">;
export declare const THING: import("../schema/json-schema.ts").NamedSchema<{
    /** Any string but *\\/. */
    readonly name: string;
    /** A part. */
    readonly part?: Part;
    /** What it is made of. */
    readonly made: Part;
    readonly parts: {
        readonly size: number;
    };
}, "Thing">;
/** A thing. */
export interface Thing extends Infer<typeof THING> {
}
export interface Other {
    readonly name: string;
}
`)
  })

  it('puts the descriptions of operations and parameters on the types of calls', () => {
    const calls = `export declare const THINGS: import("./operation.ts").OperationsOf<{
    readonly find: {
        readonly parameters: {
            readonly name?: string;
        };
        readonly answer: Thing;
    };
    readonly list: {
        readonly parameters: Record<never, never>;
        readonly answer: Page<{
            readonly name: string;
        }>;
    };
}>;
`
    expect(documentedTypes(calls, CONTRACT)).toBe(`export declare const THINGS: import("./operation.ts").OperationsOf<{
    /** Finds a thing. */
    readonly find: {
        readonly parameters: {
            /** Its name. */
            readonly name?: string;
        };
        readonly answer: Thing;
    };
    /** Lists things. */
    readonly list: {
        readonly parameters: Record<never, never>;
        readonly answer: Page<{
            readonly name: string;
        }>;
    };
}>;
`)
  })

  it('leaves types alone that the contract does not describe', () => {
    expect(documentedTypes(TYPES, { SCHEMAS: {}, OPERATIONS: {} })).toBe(TYPES)
  })
})
