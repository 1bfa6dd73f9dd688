// Renders docs/reference/gateway.md from the schema that the gateway's parts of a configuration file are checked by.
import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'
import { wrapped } from './wrap-text.ts'

/** Path of the reference, relative to the repository. */
export const gatewayReferenceFile = 'docs/reference/gateway.md'

/** The part of a schema that the reference shows. */
interface ShownSchema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly type?: string
  readonly enum?: readonly string[]
  readonly anyOf?: readonly ShownSchema[]
  readonly properties?: Readonly<Record<string, ShownSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | ShownSchema
  readonly items?: ShownSchema
  readonly minimum?: number
  readonly maximum?: number
}

const INTRODUCTION = `# Gateway configuration

<!-- Generated from the schema of the gateway by \`npm run api-docs\`. Change the schema, not this page. -->

\`gateway\`, \`routes\` and \`upstreams\` stand in \`sluice.yaml\` beside the rules. All parts of a file are checked
together, and a file with a problem changes nothing. A change of the file takes effect without a dropped request. Paths
of files are relative to \`sluice.yaml\`.

Durations are strings such as \`500ms\`, \`30s\` or \`1h30m\`, or numbers of milliseconds.

## Which route a request takes

1. Host: a name comes before a wildcard, a longer wildcard before a shorter one, and any host is last.
2. Path: as for [rules](../guides/concepts/rules.md#which-rule-applies), the most specific pattern.
3. Methods: a route with methods comes before one without.
4. Headers: a route with more headers comes before one with fewer.
5. The first in the file.

The upstream gets the path as the client sent it, except that letters, digits and \`-._~\` that were encoded without
need are decoded. Servers read some paths differently, such as \`/files/..%2fadmin\`. A request has a route only if
every reading of its path leads to routes with the same protection: upstream, \`auth\`, \`limits\`, \`resource\`,
\`rewrite\`, \`charge\`, \`blockAfter\`, \`webSocket\` and \`maxBodyBytes\`. Otherwise it gets 400. So no spelling
of a path leads past what protects it.`

/** The text of the reference. */
export async function renderGatewayReference(): Promise<string> {
  const source = join(repositoryRoot, 'packages/gateway/src/config/gateway-schema.ts')
  const { GATEWAY_SCHEMA } = (await import(source)) as {
    readonly GATEWAY_SCHEMA: ShownSchema & { readonly $defs: Readonly<Record<string, ShownSchema>> }
  }
  const { properties = {}, $defs } = GATEWAY_SCHEMA
  const sections = new Sections($defs)
  for (const [name, schema] of Object.entries(properties)) sections.add(name, schema, '##')
  return `${[INTRODUCTION, ...sections.all].join('\n\n')}\n`
}

/** One section for each object: its properties, then those of the objects in it. */
class Sections {
  readonly all: string[] = []
  readonly #definitions: Readonly<Record<string, ShownSchema>>
  /** Where an object that several places use is described. */
  readonly #described = new Map<ShownSchema, string>()

  constructor(definitions: Readonly<Record<string, ShownSchema>>) {
    this.#definitions = definitions
  }

  add(path: string, schema: ShownSchema, heading: string): void {
    const resolved = this.#resolve(schema)
    const inner = this.#objectIn(resolved)
    this.all.push(`${heading} \`${path}\``)
    if (resolved.description !== undefined) this.all.push(wrapped(resolved.description))
    if (inner === undefined) return
    const place = inner.schema === this.#resolve(schema) ? path : `${path}${inner.suffix}`
    if (resolved.examples?.[0] !== undefined) this.all.push(exampleText(path, resolved.examples[0]))
    this.#addProperties(place, inner.schema)
  }

  #addProperties(path: string, schema: ShownSchema): void {
    const rows: string[] = []
    const further: (() => void)[] = []
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const resolved = this.#resolve(property)
      const inner = this.#objectIn(resolved)
      const isNeeded = schema.required?.includes(name) === true
      const text = [isNeeded ? 'Required.' : '', resolved.description ?? ''].filter((part) => part !== '').join(' ')
      const before = inner === undefined ? undefined : this.#described.get(inner.schema)
      const link =
        inner === undefined
          ? ''
          : ` See [\`${before ?? `${path}.${name}`}\`](#${anchorOf(before ?? `${path}.${name}`)}).`
      rows.push(wrapped(`- \`${name}\` (${this.#kindOf(resolved)}): ${text}${link}`, '  '))
      if (inner === undefined || before !== undefined) continue
      this.#described.set(inner.schema, `${path}.${name}`)
      further.push(() => this.add(`${path}.${name}`, property, '###'))
    }
    this.all.push(rows.join('\n'))
    for (const add of further) add()
  }

  /** The object with properties that a value is, or that its entries are. */
  #objectIn(schema: ShownSchema): { readonly schema: ShownSchema; readonly suffix: string } | undefined {
    if (schema.properties !== undefined) return { schema, suffix: '' }
    const entries = schema.items ?? schema.additionalProperties
    if (typeof entries !== 'object') return undefined
    const entry = this.#target(entries)
    return entry.properties === undefined ? undefined : { schema: entry, suffix: schema.items ? '[]' : '.NAME' }
  }

  /** What a reference leads to, with what is said beside it. */
  #resolve(schema: ShownSchema): ShownSchema {
    const target = this.#target(schema)
    return target === schema || Object.keys(schema).length === 1 ? target : { ...target, ...schema }
  }

  #target(schema: ShownSchema): ShownSchema {
    return schema.$ref === undefined ? schema : this.#target(this.#definitions[schema.$ref.split('/').at(-1)!]!)
  }

  #kindOf(schema: ShownSchema): string {
    if (schema.enum !== undefined) return schema.enum.map((word) => `\`${word}\``).join(', ')
    if (schema.$ref === '#/$defs/duration') return 'duration'
    if (schema.type === 'array') return 'list'
    if (schema.type === 'object') return schema.properties === undefined ? 'object by name' : 'object'
    if (schema.title !== undefined) return schema.title
    if (schema.type === 'string') return 'text'
    if (schema.type === 'boolean') return '`true` or `false`'
    if (schema.anyOf !== undefined) return 'text or list'
    const { minimum, maximum } = schema
    const kind = schema.type === 'integer' ? 'whole number' : 'number'
    return minimum !== undefined && maximum !== undefined ? `${kind} from ${minimum} to ${maximum}` : kind
  }
}

function anchorOf(path: string): string {
  return path.toLowerCase().replace(/[^a-z0-9_-]/g, '')
}

/** An example as it stands in `sluice.yaml`. */
function exampleText(path: string, example: unknown): string {
  return `\`\`\`yaml\n${path.split('.').at(-1)!}: ${flowOf(example)}\n\`\`\``
}

/** A value in the flow style of YAML. */
function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const properties = Object.entries(value).map(([name, part]) => `${name}: ${flowOf(part)}`)
  return `{ ${properties.join(', ')} }`
}
