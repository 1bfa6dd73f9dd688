import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'

// The real service as a process of its own, and a browser that uses its dashboard.

const FOLDER = join(import.meta.dirname, '../..')
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Why the tests in this folder cannot run here; undefined when they can. */
export const MISSING: string | undefined = BROWSERS.some((path) => existsSync(path))
  ? undefined
  : `none of ${BROWSERS.join(', ')} is installed`

/** A service that runs, with its dashboard. */
export interface RealService {
  readonly url: string
  readonly adminKey: string
  /** Calls the admin API with the first key; answers the body. */
  admin(method: string, path: string, body?: unknown): Promise<unknown>
  /** Asks whether a call may go on; answers the status. */
  check(body: object): Promise<number>
  close(): Promise<void>
}

/** The service and the browser of a test file, once they run. */
export type Running = () => { readonly service: RealService; readonly browser: Browser }

/** Builds the dashboard where the service finds it, and starts the service on a free port. */
export async function startRealService(): Promise<RealService> {
  const build = pathToFileURL(join(FOLDER, '../../tools/dashboard-build.ts')).href
  const script = `const { ensureDashboard } = await import('${build}'); await ensureDashboard()`
  execFileSync(process.execPath, ['--conditions=source', '--input-type=module', '-e', script], { stdio: 'inherit' })
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-dashboard-'))
  const main = join(FOLDER, '../service/src/main.ts')
  const flags = ['--port', '0', '--data-dir', dataDir, '--drain-ms', '0', '--threads', '1']
  const child = spawn(process.execPath, ['--conditions=source', main, ...flags], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {},
  })
  const exit = once(child, 'close')
  const known: { firstKey?: string; url?: string } = {}
  while (known.url === undefined) {
    const [message] = (await once(child, 'message')) as [typeof known]
    Object.assign(known, message)
  }
  const { url, firstKey: adminKey = '' } = known
  const ask = async (method: string, path: string, body?: unknown): Promise<Response> =>
    await fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
  return {
    url,
    adminKey,
    admin: async (method, path, body) => {
      const answer = await ask(method, path, body)
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
      return text === '' ? undefined : JSON.parse(text)
    },
    check: async (body) => (await ask('POST', '/internal/ratelimit/check', body)).status,
    close: async () => {
      child.kill('SIGKILL')
      await exit
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Starts a browser. Root has no sandbox of users; the pages are ours. */
export function startBrowser(): Promise<Browser> {
  const executablePath = BROWSERS.find((path) => existsSync(path))!
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

/** A page, and everything that went wrong in it. */
export interface WatchedPage {
  readonly page: Page
  /** Violations of the content security policy, exceptions, errors of the console, requests to other origins. */
  readonly problems: readonly string[]
}

/** Opens a page of the dashboard in a browser of its own; signs in first when a key is given. */
export async function openPage(
  browser: Browser,
  url: string,
  { key, ...options }: BrowserContextOptions & { readonly key?: string } = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  context.setDefaultTimeout(15_000)
  const page = await context.newPage()
  const problems: string[] = []
  const { origin } = new URL(url)
  page.on('pageerror', (error) => problems.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    // A violation of the policy is an error of the console. So is an answer of 400 or above, which pages expect.
    const isAnswer = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isAnswer) problems.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`request to ${request.url()}`)
  })
  if (key !== undefined) {
    const answer = await context.request.post(new URL('/auth/session', url).href, { data: { apiKey: key } })
    if (!answer.ok()) throw new Error(`The sign-in answered ${answer.status()}: ${await answer.text()}`)
  }
  await page.goto(url)
  return { page, problems }
}

/** What axe finds wrong with the page as it is now: rule and element. `rules`: only these. Default: all. */
export async function accessibilityProblems(page: Page, rules: readonly string[] = []): Promise<string[]> {
  const axe = new AxeBuilder({ page: page as never })
  const { violations } = await (rules.length === 0 ? axe : axe.withRules([...rules])).analyze()
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')}: ${failureSummary}`),
  )
}
