import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Calls, OperationId } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import { ToolError } from '../tool-error.ts'
import { repositoryRoot } from '../workspace.ts'
import { DEMO_CANDIDATE, DEMO_RULES } from './demo-rules.ts'

const MAIN = join(repositoryRoot, 'apps/service/src/main.ts')

/** A node of the demo. */
export interface DemoNode {
  /** With the host name `localhost`, which the cookie of the sign-in link is for. */
  readonly url: string
  /** The key that the node printed; undefined when another node had made it before. */
  readonly firstKey: string | undefined
  readonly process: ChildProcess
}

/** Starts a node of the service on this machine; resolves when it listens. */
export function startNode(args: readonly string[]): Promise<DemoNode> {
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning']
  const child = spawn(process.execPath, [...flags, MAIN, ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  return new Promise((resolve, reject) => {
    let firstKey: string | undefined
    child.on('message', (message: { event: string; firstKey?: string; url?: string }) => {
      if (message.event === 'firstKey') firstKey = message.firstKey
      if (message.event !== 'started' || message.url === undefined) return
      const { port } = new URL(message.url)
      resolve({ url: `http://localhost:${port}`, firstKey, process: child })
    })
    child.once('exit', (code) =>
      reject(new ToolError('DEMO_FAILED', `The service ended with code ${code}; its output is above.`)),
    )
  })
}

/** Enforces the rules of the demo, measures the candidate beside them, and gives some callers an entry of their own. */
export async function putDemoRules(url: string, apiKey: string): Promise<void> {
  const calls = new AdminCalls(url, apiKey)
  const { version } = await calls.send('listRateLimits')
  const draft = { ruleSet: DEMO_RULES, basedOn: version, note: 'Rules of the demo' }
  const rules = await calls.send('createVersion', { body: draft })
  await calls.stage(rules.number, 'enforce')
  const note = 'Half the orders and searches: what would it deny?'
  const next = { ruleSet: DEMO_CANDIDATE, basedOn: rules.number, note }
  const candidate = await calls.send('createVersion', { body: next })
  await calls.stage(candidate.number, 'shadow')
  await calls.send('putMember', { body: { dimension: 'tenant', entity: 'tenant-1', tier: 'partner' } })
  const terms = { multiplier: 2 }
  const override = { dimension: 'user', entity: 'user-1003', resource: '/api/v1/search', terms } as const
  await calls.send('putOverride', { body: override })
  const block = { dimension: 'ip', entity: '203.0.113.69', duration: '1h', reason: 'tried passwords' } as const
  await calls.send('putBlock', { body: block })
}

class AdminCalls {
  readonly #url: string
  readonly #apiKey: string

  constructor(url: string, apiKey: string) {
    this.#url = url
    this.#apiKey = apiKey
  }

  async stage(number: number, stage: 'enforce' | 'shadow'): Promise<void> {
    await this.send('stageVersion', { body: { stage }, path: { number } })
  }

  async send<Id extends OperationId>(
    id: Id,
    input: { body?: Calls[Id]['body']; path?: Record<string, number> } = {},
  ): Promise<Calls[Id]['answer']> {
    const { method, path } = OPERATIONS[id]
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => String(input.path?.[name]))
    const response = await fetch(new URL(filled, this.#url), {
      method,
      headers: { authorization: `Bearer ${this.#apiKey}`, 'content-type': 'application/json' },
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
    })
    const answer = await response.text()
    if (!response.ok) throw new ToolError('DEMO_FAILED', `${method} ${filled} was answered with ${answer}`)
    return JSON.parse(answer) as Calls[Id]['answer']
  }
}
