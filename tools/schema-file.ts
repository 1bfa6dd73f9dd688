import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'

/** As in biome.jsonc: what a file of ours looks like. */
const LINE_WIDTH = 120

/** Where the schema of rule set files is published, relative to the repository. */
export const schemaFile = 'packages/config-store/sluice.schema.json'

/** A file has rules, or routes of a gateway whose rules are in the database, or settings alone. */
const USES = ['rules', 'routes', 'service'].map((name) => ({ required: [name] }))

interface ObjectSchema {
  readonly properties: Readonly<Record<string, object>>
  readonly $defs: Readonly<Record<string, object>>
  readonly required?: readonly string[]
}

/**
 * The text of that file, made of the schemas that rule sets, and the settings of the service and the parts of the
 * gateway beside them, are checked by.
 */
export async function renderSchemaFile(): Promise<string> {
  const RULES = 'packages/core/src/policy/rule-set/schema/rule-set-schema.ts'
  const SETTINGS = 'apps/service/src/settings/settings.ts'
  const file = await exported<ObjectSchema>(RULES, 'RULE_SET_FILE_SCHEMA')
  // The core only knows that there are settings: those who read the file know which.
  const settings = await exported<object>(SETTINGS, 'SERVICE_PART_SCHEMA')
  const service = { ...file.properties['service'], ...settings }
  const GATEWAY = 'packages/gateway/src/config/gateway-schema.ts'
  const gateway = await exported<ObjectSchema['properties']>(GATEWAY, 'GATEWAY_PARTS')
  const definitions = await exported<ObjectSchema['$defs']>(GATEWAY, 'GATEWAY_DEFINITIONS')
  const properties = { ...file.properties, service, ...gateway }
  const { required: _required, ...rest } = file
  const whole = { ...rest, properties, anyOf: USES, $defs: { ...file.$defs, ...definitions } }
  return `${printJson(whole, '', 0)}\n`
}

async function exported<T>(source: string, name: string): Promise<T> {
  return ((await import(join(repositoryRoot, source))) as Readonly<Record<string, T>>)[name]!
}

/**
 * JSON as the formatter leaves it: lists on one line where they fit and hold no object; `before`: what stands in the
 * line.
 */
function printJson(value: unknown, indent: string, before: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const deeper = `${indent}  `
  if (Array.isArray(value)) {
    const line = `[${value.map((entry) => printJson(entry, deeper, 0)).join(', ')}]`
    if (!line.includes('\n') && before + line.length + 1 <= LINE_WIDTH) return line
    return `[\n${value.map((entry) => deeper + printJson(entry, deeper, deeper.length)).join(',\n')}\n${indent}]`
  }
  const lines = Object.entries(value).map(([name, part]) => {
    const head = `${deeper}${JSON.stringify(name)}: `
    return head + printJson(part, deeper, head.length)
  })
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}
