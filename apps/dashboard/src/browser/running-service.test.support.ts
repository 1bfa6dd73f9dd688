import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../../..')

/** A service as `npm start` starts it, with the built dashboard. */
export interface RunningService {
  /** Ends without a slash. */
  readonly url: string
  /** The key that it printed first; its role is admin. */
  readonly apiKey: string
  /** What it has printed to its error stream. */
  complaints(): string
  /** Calls the admin API with that key; rejects unless the answer is a success. */
  admin<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends a check and tells its status. */
  check(body: object): Promise<number>
  stop(): Promise<void>
}

/** An alert that fires at once where nearly all of many calls are denied: single denials of other tests are none. */
const ALERTS = `service:
  alerts:
    denial-rate: { threshold: 0.8, forSeconds: 0, windowSeconds: 60, leastSamples: 400 }
`

/** Starts a service on a free port, in a data folder of its own. `alertWebhook`: where alerts are sent. */
export async function startService({ alertWebhook }: { alertWebhook?: string } = {}): Promise<RunningService> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-dashboard-service-'))
  const config = join(folder, 'sluice.yaml')
  writeFileSync(config, ALERTS)
  const settings = [
    '--port',
    '0',
    '--data-dir',
    join(folder, 'data'),
    '--drain-ms',
    '0',
    '--log-level',
    'error',
    '--gateway-port',
    '0',
    '--config',
    config,
    ...(alertWebhook === undefined ? [] : ['--alert-webhooks', alertWebhook]),
  ]
  const program = join(ROOT, 'tools/start.ts')
  const child = spawn(process.execPath, ['--conditions=source', program, ...settings], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let complaints = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { url, apiKey } = await new Promise<{ url: string; apiKey: string }>((resolve, reject) => {
    let firstKey = ''
    child.on('message', (message: { firstKey?: string; url?: string }) => {
      firstKey = message.firstKey ?? firstKey
      if (message.url !== undefined) resolve({ url: message.url, apiKey: firstKey })
    })
    void ended.then(() => reject(new Error(`The service has ended too early: ${complaints}`)))
  })
  return {
    url,
    apiKey,
    complaints: () => complaints,
    admin: (method, path, body) => adminCall({ url, apiKey }, method, { path, body }),
    check: async (body) => (await postJson(`${url}/internal/ratelimit/check`, body)).status,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function postJson(url: string, body: object): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
}

interface AdminRequest {
  readonly path: string
  readonly body: unknown
}

async function adminCall<T>(
  { url, apiKey }: Pick<RunningService, 'url' | 'apiKey'>,
  method: string,
  { path, body }: AdminRequest,
): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}
