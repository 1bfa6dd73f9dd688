import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'
import { wrapped } from './wrap-text.ts'

/** Path of the HTTP API reference, relative to the repository. */
export const apiReferenceFile = 'docs/reference/http-api.md'

/** The part of an operation that the reference shows. */
interface ShownOperation {
  readonly method: string
  readonly path: string
  readonly role: string
  readonly summary: string
  readonly description: string
  readonly tag: string
  readonly parameters: Readonly<
    Record<string, { readonly in: string; readonly required: boolean; readonly description: string }>
  >
  readonly body?: { readonly $ref?: string }
  readonly maxBodyBytes: number
  readonly answers: Readonly<
    Record<
      string,
      {
        readonly description: string
        readonly problems?: readonly string[]
        readonly schema?: { readonly $ref?: string }
      }
    >
  >
  readonly hasEtag: boolean
  readonly isPaged: boolean
  readonly streams: boolean
}

interface ShownSchema {
  readonly examples?: readonly unknown[]
}

const INTRODUCTION = `# HTTP API

<!-- Generated from the operation table by \`npm run api-docs\`. Change the table, not this page. -->

Every operation of the service, with one example of each body. \`GET /openapi.json\` of a running service lists all
fields as OpenAPI 3.1. [Get started with the service](../guides/get-started/service.md) shows the first calls.
[Errors](errors.md#service-over-http) explains each problem.

- Send JSON with \`Content-Type: application/json\`. Unknown fields are rejected.
- Send \`Authorization: Bearer <key>\` where a role is named. Each [role](../guides/operate/keys-and-roles.md) includes
  the permissions of the previous one: viewer, editor, admin.
- Lists are paged: an answer has up to \`limit\` items and \`next\`. Send \`next\` as \`after\` to get the next page.
- Operations marked *ETag* answer reads with an \`ETag\`. A change that sends it as \`If-Match\` is rejected with 412 if
  the entry has changed since. With \`If-None-Match: *\`, a \`PUT\` is rejected if the entry exists.
- Errors are \`application/problem+json\` with a \`code\`.
`

/** The text of the reference, generated from the operations of the contract. */
export async function renderApiReference(): Promise<string> {
  const source = join(repositoryRoot, 'packages/contract/src/index.ts')
  const { OPERATIONS, SCHEMAS } = (await import(source)) as {
    readonly OPERATIONS: Readonly<Record<string, ShownOperation>>
    readonly SCHEMAS: Readonly<Record<string, ShownSchema>>
  }
  const byTag = Map.groupBy(Object.values(OPERATIONS), ({ tag }) => tag)
  const parts = [...byTag].map(([tag, operations]) =>
    [`## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}`, ...operations.map((one) => sectionOf(one, SCHEMAS))].join(
      '\n\n',
    ),
  )
  return `${[INTRODUCTION.trimEnd(), ...parts].join('\n\n')}\n`
}

function sectionOf(operation: ShownOperation, schemas: Readonly<Record<string, ShownSchema>>): string {
  const { method, path, summary, description, parameters, body, answers } = operation
  const lines = [
    `### \`${method} ${path}\``,
    wrapped(`${/[.?!]$/.test(summary) ? summary : `${summary}.`} ${description}`),
    traitsOf(operation),
  ]
  const rows = Object.entries(parameters).map(
    ([name, parameter]) =>
      `| \`${name}\` | ${parameter.in} | ${parameter.required ? 'yes' : 'no'} | ` +
      `${parameter.description.replaceAll('|', '\\|')} |`,
  )
  if (rows.length > 0) lines.push(['| parameter | in | required | meaning |', '|---|---|---|---|', ...rows].join('\n'))
  const [sent] = examplesOf(body, schemas)
  if (sent !== undefined) lines.push(`Body:\n\n${jsonBlock(sent)}`)
  lines.push(answersOf(answers, schemas))
  return lines.join('\n\n')
}

function traitsOf({ role, maxBodyBytes, hasEtag, isPaged, streams }: ShownOperation): string {
  const traits = [
    role === 'none' ? 'No key required' : `Role: ${role}`,
    ...(maxBodyBytes > 0 ? [`body up to ${maxBodyBytes / 1024} KiB`] : []),
    ...(hasEtag ? ['ETag'] : []),
    ...(isPaged ? ['paged'] : []),
    ...(streams ? ['streams until you close it'] : []),
  ]
  return `${traits.join('; ')}.`
}

function answersOf(answers: ShownOperation['answers'], schemas: Readonly<Record<string, ShownSchema>>): string {
  const rows = Object.entries(answers).map(([status, { description, problems }]) => {
    const shown = problems === undefined ? description : problems.map((code) => `\`${code}\``).join(', ')
    return `| ${status} | ${shown.replaceAll('|', '\\|')} |`
  })
  const table = ['| status | answer |', '|---|---|', ...rows].join('\n')
  const [good] = Object.values(answers).filter(({ problems }) => problems === undefined)
  const [example] = examplesOf(good?.schema, schemas)
  return example === undefined || typeof example === 'string' ? table : `${table}\n\n${jsonBlock(example)}`
}

function examplesOf(
  reference: { readonly $ref?: string } | undefined,
  schemas: Readonly<Record<string, ShownSchema>>,
): readonly unknown[] {
  const { $ref = '' } = reference ?? {}
  return schemas[$ref.slice($ref.lastIndexOf('/') + 1)]?.examples ?? []
}

function jsonBlock(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}
