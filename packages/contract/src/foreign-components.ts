/** A JSON Schema with definitions of its own. */
export interface SchemaWithDefinitions {
  readonly $schema?: string
  readonly $defs?: Readonly<Record<string, object>>
}

/** How the parts of a schema are to be called. */
export interface ComponentNames {
  /** The schema as a whole. */
  readonly root: string
  /** Names for definitions; others are called as they are, with a capital. */
  readonly definitions?: Readonly<Record<string, string>>
}

/**
 * The parts of a schema as components of an OpenAPI document: the whole without its definitions, and each definition. They
 * refer to each other by their new names.
 */
export function componentsOf(
  { $schema: _dialect, $defs = {}, ...root }: SchemaWithDefinitions,
  names: ComponentNames,
): Record<string, object> {
  const nameOf = (definition: string): string =>
    names.definitions?.[definition] ?? definition.charAt(0).toUpperCase() + definition.slice(1)
  const moved = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(moved)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [key, key === '$ref' ? movedReference(part) : moved(part)]),
    )
  }
  const movedReference = (reference: unknown): unknown =>
    String(reference).replace(
      /^#\/\$defs\/([^/]+)/,
      (_, definition: string) => `#/components/schemas/${nameOf(definition)}`,
    )
  const definitions = Object.entries($defs).map(([definition, schema]) => [nameOf(definition), moved(schema)])
  return { [names.root]: moved(root) as object, ...Object.fromEntries(definitions) }
}
