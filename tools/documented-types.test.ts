import { describe, expect, it } from 'vitest'
import { documentedTypes } from './documented-types.ts'

const SCHEMAS = {
  Part: { description: 'A part.', properties: { size: { description: 'How large.' } } },
  Thing: {
    description: 'A thing.',
    properties: {
      name: { description: 'Any text but */.' },
      part: { $ref: '#/components/schemas/Part' },
      made: { $ref: '#/components/schemas/Part', description: 'What it is made of.' },
      parts: { properties: { size: { description: 'Not of the thing.' } } },
    },
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
    expect(documentedTypes(TYPES, SCHEMAS)).toBe(`declare const PART: NamedSchema<{
    /** How large. */
    readonly size: number;
}, "Part">;
export declare const THING: import("../schema/json-schema.ts").NamedSchema<{
    /** Any text but *\\/. */
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

  it('leaves types alone that no schema describes', () => {
    expect(documentedTypes(TYPES, {})).toBe(TYPES)
  })
})
