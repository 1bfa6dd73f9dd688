import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonSchema, Operation } from '@sluice/contract'
import { OPERATIONS, SCHEMAS } from '@sluice/contract'
import { onTestFinished } from 'vitest'

// A server that answers every operation with the example that the contract gives, and records the requests.

/** A request as it arrived. */
export interface Asked {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: unknown
}

/** What to answer instead of the example; false for the example. */
export type Override = (asked: Asked, response: ServerResponse, request: IncomingMessage) => boolean

/** Every operation of the service. */
export const ALL_OPERATIONS: readonly Operation[] = Object.values<Operation>(OPERATIONS)

const COMPONENTS = SCHEMAS as Readonly<Record<string, JsonSchema>>

/** A server by the table of operations, on a free port of this machine; it ends with the test. */
export class TableServer {
  readonly asked: Asked[] = []
  /** Connections that were ever made. */
  connections = 0
  answer: Override = () => false
  readonly url: string

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`
  }

  static async start(): Promise<TableServer> {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const table = new TableServer((server.address() as AddressInfo).port)
    server.on('request', (request, response) => void table.#serve(request, response))
    server.on('connection', () => {
      table.connections++
    })
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    })
    return table
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    const { method = '', url = '', headers } = request
    const { pathname, searchParams } = new URL(url, this.url)
    const found = operationAt(method, pathname)
    const asked: Asked = {
      id: found?.operation.id ?? 'none',
      method,
      path: pathname,
      params: found?.params ?? {},
      query: Object.fromEntries(searchParams),
      headers,
      body: text === '' ? undefined : JSON.parse(text),
    }
    this.asked.push(asked)
    if (this.answer(asked, response, request)) return
    if (found === undefined) response.writeHead(404).end()
    else answerExample(found.operation, response)
  }
}

/** Sends JSON with this status. */
export function answerJson(response: ServerResponse, status: number, value: unknown): true {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
  return true
}

/** The status and body that an operation answers with when all went well. */
export function exampleOf({ answers }: Operation): { readonly status: number; readonly body: unknown } {
  const status = Number(Object.keys(answers).find((key) => Number(key) < 400))
  const { schema, example } = answers[status]!
  return { status, body: example ?? (schema === undefined ? undefined : exampleOfSchema(schema)) }
}

/** A value that fits a schema: its first example, or that of what it refers to. */
export function exampleOfSchema({ $ref, examples }: JsonSchema): unknown {
  if ($ref === undefined) return examples?.[0]
  const name = $ref.slice('#/components/schemas/'.length)
  // Schemas that are not the contract's own are known to the service alone.
  return COMPONENTS[name]?.examples?.[0] ?? { name: 'foreign' }
}

function answerExample(operation: Operation, response: ServerResponse): void {
  const { status, body } = exampleOf(operation)
  const { mediaType = 'application/json' } = operation.answers[status]!
  if (body === undefined) response.writeHead(status).end()
  else {
    const isJson = mediaType === 'application/json'
    response.writeHead(status, { 'Content-Type': mediaType }).end(isJson ? JSON.stringify(body) : String(body))
  }
}

function operationAt(
  method: string,
  path: string,
): { readonly operation: Operation; readonly params: Readonly<Record<string, string>> } | undefined {
  const candidates = ALL_OPERATIONS.filter((operation) => operation.method === method).toSorted(
    (one, other) => one.path.split('{').length - other.path.split('{').length,
  )
  for (const operation of candidates) {
    const pattern = operation.path.replaceAll(/[.]/g, '\\.').replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')
    const match = new RegExp(`^${pattern}$`).exec(path)
    if (match === null) continue
    const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)])
    return { operation, params: Object.fromEntries(params) }
  }
  return undefined
}
