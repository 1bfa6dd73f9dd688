import { join } from 'node:path'
import { repositoryRoot } from './workspace.ts'

/** Where the reference of the HTTP API is, relative to the repository. */
export const apiReferenceFile = 'docs/reference/http-api.md'

/** What the reference tells of an operation: part of what the contract knows. */
interface ToldOperation {
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

interface ToldSchema {
  readonly examples?: readonly unknown[]
}

const INTRODUCTION = `# HTTP API

<!-- Made of the table of operations by \`npm run api-docs\`: change that, not this page. -->

Every operation of the service, with one example of each body. \`GET /openapi.json\` of a running service has all fields, as OpenAPI
3.1. [The guide](../guides/service.md) says how to start it, and what roles and headers there are;
[errors](errors.md#service-over-http) explains each problem.

- Send JSON with \`Content-Type: application/json\`. A field that is not known is refused.
- \`Authorization: Bearer <key>\` where a role is named. A role may all that those before it may: viewer, editor, admin.
- A list is answered in pages: \`limit\` items, and \`next\` to send as \`after\` for the next page.
- With *ETag*, a read answers with one, and a change may send it back as \`If-Match\`: it is then refused when somebody else
  was quicker. With \`If-None-Match: *\` a \`PUT\` is refused when something is there already.
- What goes wrong is answered as \`application/problem+json\` with a \`code\`.
`

/** The text of the reference, made of the operations of the contract. */
export async function renderApiReference(): Promise<string> {
  const source = join(repositoryRoot, 'packages/contract/src/index.ts')
  const { OPERATIONS, SCHEMAS } = (await import(source)) as {
    readonly OPERATIONS: Readonly<Record<string, ToldOperation>>
    readonly SCHEMAS: Readonly<Record<string, ToldSchema>>
  }
  const byTag = Map.groupBy(Object.values(OPERATIONS), ({ tag }) => tag)
  const parts = [...byTag].map(([tag, operations]) =>
    [`## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}`, ...operations.map((one) => sectionOf(one, SCHEMAS))].join(
      '\n\n',
    ),
  )
  return `${[INTRODUCTION.trimEnd(), ...parts].join('\n\n')}\n`
}

function sectionOf(operation: ToldOperation, schemas: Readonly<Record<string, ToldSchema>>): string {
  const { method, path, summary, description, parameters, body, answers } = operation
  const lines = [
    `### \`${method} ${path}\``,
    `${/[.?!]$/.test(summary) ? summary : `${summary}.`} ${description}`,
    traitsOf(operation),
  ]
  const rows = Object.entries(parameters).map(
    ([name, parameter]) =>
      `| \`${name}\` | ${parameter.in} | ${parameter.required ? 'yes' : 'no'} | ${parameter.description.replaceAll('|', '\\|')} |`,
  )
  if (rows.length > 0) lines.push(['| parameter | in | needed | meaning |', '|---|---|---|---|', ...rows].join('\n'))
  const [sent] = examplesOf(body, schemas)
  if (sent !== undefined) lines.push(`Body:\n\n${jsonBlock(sent)}`)
  lines.push(answersOf(answers, schemas))
  return lines.join('\n\n')
}

function traitsOf({ role, maxBodyBytes, hasEtag, isPaged, streams }: ToldOperation): string {
  const traits = [
    role === 'none' ? 'No key needed' : `Role: ${role}`,
    ...(maxBodyBytes > 0 ? [`body up to ${maxBodyBytes / 1024} KiB`] : []),
    ...(hasEtag ? ['ETag'] : []),
    ...(isPaged ? ['in pages'] : []),
    ...(streams ? ['goes on until you end it'] : []),
  ]
  return `${traits.join('; ')}.`
}

function answersOf(answers: ToldOperation['answers'], schemas: Readonly<Record<string, ToldSchema>>): string {
  const rows = Object.entries(answers).map(([status, { description, problems }]) => {
    const told = problems === undefined ? description : problems.map((code) => `\`${code}\``).join(', ')
    return `| ${status} | ${told.replaceAll('|', '\\|')} |`
  })
  const table = ['| status | answer |', '|---|---|', ...rows].join('\n')
  const [good] = Object.values(answers).filter(({ problems }) => problems === undefined)
  const [example] = examplesOf(good?.schema, schemas)
  return example === undefined || typeof example === 'string' ? table : `${table}\n\n${jsonBlock(example)}`
}

function examplesOf(
  reference: { readonly $ref?: string } | undefined,
  schemas: Readonly<Record<string, ToldSchema>>,
): readonly unknown[] {
  const { $ref = '' } = reference ?? {}
  return schemas[$ref.slice($ref.lastIndexOf('/') + 1)]?.examples ?? []
}

function jsonBlock(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}
