import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ApiKeyRole, ConfigFollower, ConfigStore, ConfigTarget } from '@sluice/config-store'
import { engineTarget, followConfig } from '@sluice/config-store'
import type { FieldProblem, Operation, OperationId } from '@sluice/contract'
import { componentsOf, OPERATIONS, openApiDocument } from '@sluice/contract'
import type { MemoryStore } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import type { JsonSchema } from '@sluice/core/internal'
import { RULE_SET_SCHEMA, SchemaCheck } from '@sluice/core/internal'
import { PolicyEngine } from '@sluice/core/policy'
import { Logger, LogOutput, MetricRegistry } from '@sluice/runtime'
import { FakeClock, seededRandom } from '@sluice/testing'
import { expect, onTestFinished } from 'vitest'
import { ApiKeyCache, Authenticator } from '../../auth/authenticator.ts'
import { operationRoutes } from '../../listeners/http/endpoints.ts'
import { BodyReader } from '../../listeners/http/request-body.ts'
import { RequestServer } from '../../listeners/http/request-server.ts'
import { createRouter } from '../../listeners/http/router.ts'
import type { ServiceContext } from '../../service-context.ts'
import { SingleThread } from '../../thread-messages/message-bus.ts'
import type { OperationHandlers } from '../handler.ts'
import { adminHandlers } from './admin-handlers.ts'
import type { AdminOptions } from './config-access.ts'

const READER = new BodyReader(100_000_000)

// What the tests of the admin API share: a node with its engine and its door, over a configuration of the test's
// choice.

/** What a test may say about a node. */
export interface NodeOptions {
  /** Undefined for a node whose rules come from a file. */
  readonly config: ConfigStore | undefined
  /** Whether the node follows its database and cannot reach it otherwise. Default: false. */
  readonly withoutConfig?: boolean
  readonly options?: AdminOptions
  readonly clock?: FakeClock
  /** Keeps the node up to date. Default: a follower of `config`. */
  readonly follow?: (target: ConfigTarget, engine: PolicyEngine<'sync'>) => ConfigFollower
  /** The options, where it needs the engine. */
  readonly deskOf?: (engine: PolicyEngine<'sync'>) => AdminOptions
  /** The keys it knows. Default: those of its follower. */
  readonly keys?: ApiKeyCache
  /** Handlers of operations that are not of the admin API's own. */
  readonly others?: Partial<OperationHandlers<OperationId>>
}

/** How to ask. */
export interface AskOptions {
  /** Token to send; null: none. Default: the token of the node. */
  readonly token?: string | null
  readonly body?: unknown
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
}

/** An answer, read. */
export interface ReadAnswer {
  readonly status: number
  readonly headers: Headers
  readonly etag: string | null
  readonly text: string
  /** The parsed body: whatever the operation answers with. */
  readonly body: Readonly<Record<string, unknown>>
}

const SCHEMAS = openApiDocument({
  version: 'test',
  components: componentsOf(RULE_SET_SCHEMA as object, {
    root: 'RuleSet',
    definitions: { rule: 'PolicyRule' },
  }) as Parameters<typeof openApiDocument>[0]['components'],
}).components.schemas

const CHECK = new SchemaCheck({ components: { schemas: loosened(SCHEMAS) } } as JsonSchema)

/** Every operation of the service. */
export const ALL_OPERATIONS: readonly Operation[] = Object.values<Operation>(OPERATIONS)

/** One node: its engine, its door, and everything it has answered and logged. */
export class AdminNode {
  readonly clock: FakeClock
  /** Where its engine counts. */
  readonly store: MemoryStore
  readonly engine: PolicyEngine<'sync'>
  readonly keys: ApiKeyCache
  readonly follower: ConfigFollower
  /** Everything that was written to the log. */
  readonly lines: string[] = []
  /** What the service failed at. */
  readonly errors: unknown[] = []
  /** The token that is sent when a test does not say another. */
  token: string | null = null
  readonly #server: Server

  private constructor(options: NodeOptions) {
    const { config, clock = new FakeClock(), keys = new ApiKeyCache() } = options
    this.clock = clock
    this.keys = keys
    const random = seededRandom(7)
    this.store = memoryStore({ clock, random })
    this.engine = new PolicyEngine({ store: this.store, clock, random })
    const target = engineTarget(this.engine, { others: this.keys })
    this.follower = options.follow?.(target, this.engine) ?? followConfig({ feed: config!.feed, target })
    onTestFinished(() => this.follower.close())
    const log = new Logger(new LogOutput({ stream: this.#logStream(), nowMs: () => 0, level: 'debug' }))
    const secret = new Uint8Array(32)
    // The handlers see no other setting than this one.
    const settings = { region: undefined } as ServiceContext['settings']
    const context: ServiceContext = {
      settings,
      clock,
      sleep: () => Promise.reject(new Error('Nothing waits here.')),
      random: () => 0.5,
      store: memoryStore({ clock, random }),
      engine: this.engine,
      config: options.withoutConfig === true ? undefined : config,
      follower: this.follower,
      metrics: new MetricRegistry(),
      log,
      secret,
      nextId: () => '1',
      threads: new SingleThread(),
    }
    const authenticator = new Authenticator({ keys: this.keys, clock, random, log, secret })
    const handlers = adminHandlers(context, options.deskOf?.(this.engine) ?? options.options)
    const routes = operationRoutes({
      operations: ALL_OPERATIONS,
      handlers: { ...options.others, ...handlers },
      components: SCHEMAS,
      authenticator,
      treatmentOf: () => ({ inFlightLimit: undefined, bodies: READER, needsKey: false, hasRequestId: false }),
    })
    const endpoints = new RequestServer({
      sleep: () => Promise.reject(new Error('Nothing waits here.')),
      route: createRouter(routes, 'nothing'),
      reportError: (error) => this.errors.push(error),
      newRequestId: () => '1',
    })
    this.#server = createServer((request, response) => endpoints.serve(request, response))
  }

  /** Starts a node; it ends with the test. */
  static async start(options: NodeOptions): Promise<AdminNode> {
    const node = new AdminNode(options)
    await node.follower.ready()
    await new Promise<void>((resolve) => void node.#server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      node.#server.closeAllConnections()
      return new Promise<void>((resolve) => void node.#server.close(() => resolve()))
    })
    return node
  }

  /** Asks an operation, such as `PUT /admin/tiers/premium`, and holds the answer against the table of operations. */
  async ask(target: string, options: AskOptions = {}): Promise<ReadAnswer> {
    const [method = '', path = ''] = target.split(' ')
    const response = await this.send(target, options)
    const text = await response.text()
    expect(this.errors).toEqual([])
    const { status, headers } = response
    const isText = headers.get('content-type')?.startsWith('text/plain') === true
    const body = text === '' || isText ? {} : JSON.parse(text)
    const answer = { status, headers, etag: headers.get('etag'), text, body }
    holdAgainstTable(operationAt(method, path), answer)
    return answer
  }

  /** Asks, and looks at nothing. */
  async send(target: string, options: AskOptions = {}): Promise<Response> {
    const { token = this.token, body, ifMatch, ifNoneMatch } = options
    const [method = '', path = ''] = target.split(' ')
    const { port } = this.#server.address() as AddressInfo
    return await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
        ...(ifNoneMatch === undefined ? {} : { 'If-None-Match': ifNoneMatch }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  /** How many of `calls` calls are allowed. */
  admitted(calls: number, request: Parameters<PolicyEngine<'sync'>['check']>[0]): number {
    let count = 0
    for (let call = 0; call < calls; call++) if (this.engine.check(request).allowed) count++
    return count
  }

  #logStream(): ConstructorParameters<typeof LogOutput>[0]['stream'] {
    return {
      write: (text, written) => {
        this.lines.push(text)
        written()
        return true
      },
      on: () => undefined,
      off: () => undefined,
    }
  }
}

/** A node on a database, with a key for each role. The node sends that of the admin. */
export async function startWithKeys(
  config: ConfigStore,
  options: Omit<NodeOptions, 'config'> = {},
): Promise<AdminNode & { readonly tokens: Readonly<Record<ApiKeyRole, string>> }> {
  const tokens = await issueKeys(config)
  const node = await AdminNode.start({ config, ...options })
  node.token = tokens.admin
  return Object.assign(node, { tokens })
}

/** Makes a key for each role. */
export async function issueKeys(config: ConfigStore): Promise<Readonly<Record<ApiKeyRole, string>>> {
  const issue = async (role: ApiKeyRole): Promise<string> =>
    (await config.apiKeys.create({ name: `the ${role}`, role }, { name: 'setup' })).token
  return {
    admin: await issue('admin'),
    editor: await issue('editor'),
    viewer: await issue('viewer'),
    none: await issue('none'),
  }
}

/** The paths of what is wrong, as a problem tells it. */
export function wrongPaths({ body }: ReadAnswer): readonly string[] {
  return ((body['errors'] ?? []) as readonly FieldProblem[]).map(({ path }) => path)
}

/** The items of a page. */
export function itemsOf({ body }: ReadAnswer): readonly Readonly<Record<string, unknown>>[] {
  return body['items'] as readonly Readonly<Record<string, unknown>>[]
}

/** All items of a list, page by page. */
export async function allItems(node: AdminNode, path: string, limit: number): Promise<readonly unknown[][]> {
  const pages: unknown[][] = []
  for (let next: unknown = ''; next !== undefined; ) {
    const after: string = next === '' ? '' : `&after=${encodeURIComponent(String(next))}`
    const answer = await node.ask(`GET ${path}${path.includes('?') ? '&' : '?'}limit=${limit}${after}`)
    expect(answer.status).toBe(200)
    pages.push([...itemsOf(answer)])
    next = answer.body['next']
  }
  return pages
}

/** The schemas without what the checker does not know: two types at once, and most properties. */
function loosened(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(loosened)
  if (typeof schema !== 'object' || schema === null) return schema
  const known = Object.entries(schema).filter(
    ([name, value]) => name !== 'maxProperties' && !(name === 'type' && Array.isArray(value)),
  )
  return Object.fromEntries(known.map(([name, value]) => [name, loosened(value)]))
}

function operationAt(method: string, target: string): Operation {
  const [path = ''] = target.split('?')
  const fits = (operation: Operation): boolean =>
    operation.method === method &&
    (operation.path === path || new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path))
  const found = ALL_OPERATIONS.filter(fits).sort(
    (one, other) => one.path.split('{').length - other.path.split('{').length,
  )
  if (found[0] === undefined) throw new Error(`there is no operation at ${method} ${path}`)
  return found[0]
}

/** Every answer is one that the table of operations announces, in the form that it announces. */
function holdAgainstTable({ id, answers }: Operation, { status, headers, body, text }: ReadAnswer): void {
  const declared = answers[status]
  if (declared === undefined) throw new Error(`${id} answers with ${status}, which its operation does not say: ${text}`)
  if (declared.problems !== undefined) expect(declared.problems).toContain(body['code'])
  if (declared.schema === undefined) expect(text).toBe('')
  else {
    expect(headers.get('content-type')).toBe(declared.mediaType ?? 'application/json')
    const { $ref } = declared.schema
    if ($ref !== undefined) expect(CHECK.problemsOf(body, $ref)).toEqual([])
  }
  if (declared.headers?.includes('ETag') === true) expect(headers.get('etag')).toMatch(/^"[\w-]+"$/)
  // A list for firewalls is revalidated by its ETag.
  expect(headers.get('cache-control') ?? 'no-store').toBe(
    id === 'blockFeed' && status === 200 ? 'private, no-cache' : 'no-store',
  )
}
