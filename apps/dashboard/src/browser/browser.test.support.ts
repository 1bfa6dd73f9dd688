import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'

const FOLDER = join(import.meta.dirname, '../..')
const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const SANDBOX_OFF = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']

/** Starts Chromium. Fails, and says what to install, when the machine has none. */
export function startBrowser(): Promise<Browser> {
  const found = PROGRAMS.find((path) => existsSync(path))
  if (found === undefined) {
    throw new Error(`None of ${PROGRAMS.join(', ')} exists. Install a browser: the Debian package chromium brings one.`)
  }
  // Root has no sandbox of users; the pages are ours.
  return chromium.launch({ executablePath: found, args: SANDBOX_OFF })
}

/** Builds the dashboard into a folder of its own. */
export function buildDashboard(): string {
  const outDir = mkdtempSync(join(tmpdir(), 'sluice-dashboard-'))
  const vite = join(FOLDER, '../../node_modules/vite/bin/vite.js')
  const options = ['build', '--configLoader', 'native', '--outDir', outDir, '--emptyOutDir', '--logLevel', 'error']
  execFileSync(process.execPath, ['--conditions=source', vite, ...options], { cwd: FOLDER, stdio: 'inherit' })
  return outDir
}

/** A page, and everything that went wrong in it. */
export interface WatchedPage {
  readonly page: Page
  /** Violations of the content security policy, exceptions, and errors of the console. */
  readonly problems: string[]
}

/** How a page is opened. */
export interface OpenOptions extends BrowserContextOptions {
  /** Called before the page is loaded, such as to sign in. */
  readonly prepare?: (context: BrowserContext) => Promise<void>
}

/** Opens a page in a context of its own. Requests to other origins are problems too. */
export async function openPage(
  browser: Browser,
  url: string,
  { prepare, ...options }: OpenOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  await prepare?.(context)
  const page = await context.newPage()
  const problems: string[] = []
  const { origin } = new URL(url)
  await page.exposeFunction('noteViolation', (text: string) => problems.push(text))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
      const note = (globalThis as unknown as { noteViolation(text: string): void }).noteViolation
      note(`policy: ${violatedDirective} ${blockedURI} ${sample}`)
    })
  })
  page.on('pageerror', (error) => problems.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('net::ERR_'))
      problems.push(`console: ${message.text()} ${message.location().url}`)
  })
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`request to ${request.url()}`)
  })
  await page.goto(url)
  return { page, problems }
}

/** What axe finds wrong with the page as it is now: rule and element. `rules`: only these. Default: all. */
export async function accessibilityProblems(page: Page, rules?: readonly string[]): Promise<string[]> {
  const axe = new AxeBuilder({ page: page as never })
  const { violations } = await (rules === undefined ? axe : axe.withRules([...rules])).analyze()
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')}: ${failureSummary}`),
  )
}
