// `npm run screenshots`: starts the demo and writes the pictures of the documentation to docs/images.
// --out <folder>: every page at 1440, 1024 and 390 pixels, light and dark, into this folder instead.
// --pages <names>: only these, such as decisions,usage.
// --wait-seconds <number>: how long traffic runs before the first picture. Default: 90.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { ExampleProcess } from './examples-process.ts'
import { runTool, ToolError } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** A page, and a text that says that it has loaded. */
interface Shot {
  readonly name: string
  readonly path: string
  readonly text: string
  readonly prepare?: (page: Page) => Promise<void>
}

interface Format {
  readonly width: number
  readonly theme: 'light' | 'dark'
}

const HEIGHTS: Readonly<Record<number, number>> = { 1440: 900, 1024: 768, 390: 844 }

const PAGES: readonly Shot[] = [
  { name: 'overview', path: '/', text: 'live' },
  { name: 'decisions', path: '/decisions?outcome=denied', text: 'denied: limit' },
  {
    name: 'decision',
    path: '/decisions?outcome=denied',
    text: 'denied: limit',
    prepare: async (page) => {
      await page.getByRole('button', { name: 'Explain' }).first().click()
      await page.getByRole('dialog').getByText('Would be').waitFor()
    },
  },
  { name: 'usage', path: '/usage?user=user-1000', text: 'Counters of user user-1000' },
  { name: 'explain', path: '/explain?resource=/api/v1/orders&method=POST&user=user-1000', text: 'Would be' },
  { name: 'rules', path: '/rules', text: 'rules' },
  { name: 'versions', path: '/rules?tab=versions', text: 'Versions of the rule set' },
  { name: 'overrides', path: '/rules?tab=overrides', text: 'They hold in the place of' },
  { name: 'tiers', path: '/rules?tab=tiers', text: 'Members of tiers' },
  { name: 'blocks', path: '/rules?tab=blocks', text: 'Blocks' },
  { name: 'editor', path: '/rules/edit?rule=/api/v1/orders@user', text: 'Each user may call' },
  { name: 'editor-yaml', path: '/rules/edit?view=yaml', text: 'rules.yaml' },
  { name: 'playground', path: '/playground', text: 'times the limit' },
  { name: 'gateway', path: '/gateway', text: 'Gateway' },
  { name: 'nodes', path: '/nodes', text: 'Nodes' },
  { name: 'alerts', path: '/alerts', text: 'Alerts' },
  { name: 'api-keys', path: '/api-keys', text: 'API keys' },
  { name: 'sessions', path: '/sessions', text: 'Sessions' },
  { name: 'audit', path: '/audit', text: 'Audit' },
]

/** What the documentation shows. */
const DOCUMENTED: readonly (readonly [name: string, format: Format, file: string])[] = [
  ['overview', { width: 1440, theme: 'light' }, 'overview-light'],
  ['overview', { width: 1440, theme: 'dark' }, 'overview-dark'],
  ['overview', { width: 390, theme: 'light' }, 'overview-phone'],
  ['decisions', { width: 1440, theme: 'light' }, 'decisions'],
  ['explain', { width: 1440, theme: 'dark' }, 'explain-dark'],
  ['editor', { width: 1440, theme: 'light' }, 'rule-editor'],
  ['versions', { width: 1440, theme: 'light' }, 'versions'],
  ['playground', { width: 1440, theme: 'light' }, 'playground'],
  ['gateway', { width: 1440, theme: 'dark' }, 'gateway-dark'],
]

const { values } = parseArgs({
  options: { out: { type: 'string' }, pages: { type: 'string' }, 'wait-seconds': { type: 'string', default: '90' } },
})

await runTool(async () => {
  const executablePath = PROGRAMS.find((path) => existsSync(path))
  if (executablePath === undefined) {
    throw new ToolError('NO_BROWSER', `None of ${PROGRAMS.join(', ')} exists. Install the Debian package chromium.`)
  }
  // With something to share, the demo has two nodes.
  const [redis, postgres, port, gatewayPort] = [
    await startRedis(),
    await startPostgres(),
    await freePort(),
    await freePort(),
  ]
  const ports = ['--port', String(port), '--gateway-port', String(gatewayPort)]
  const demo = new ExampleProcess({
    command: process.execPath,
    args: ['--conditions=source', join(repositoryRoot, 'tools/demo.ts'), ...ports],
    cwd: repositoryRoot,
    env: { REDIS_URL: redis.url, DATABASE_URL: (await postgres.createDatabase()).url },
  })
  const link = await demo.printed(/(http:\/\/localhost:\d+\/[\w-]{22})/)
  // Root has no sandbox of users; the pages are ours.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const storageState = await signedIn(browser, link)
    await sleep(Number(values['wait-seconds']) * 1000)
    await takeAll(browser, storageState)
  } finally {
    await browser.close()
    await demo.stop('SIGTERM')
    await redis.close()
    await postgres.close()
  }
})

interface SignedIn {
  readonly origin: string
  readonly state: Awaited<ReturnType<BrowserContext['storageState']>>
}

async function signedIn(browser: Browser, link: string): Promise<SignedIn> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'attached' })
  const { origin } = new URL(page.url())
  const state = await context.storageState()
  await context.close()
  return { origin, state }
}

async function takeAll(browser: Browser, session: SignedIn): Promise<void> {
  const folder = values.out ?? join(repositoryRoot, 'docs/images')
  mkdirSync(folder, { recursive: true })
  if (values.out === undefined) {
    for (const [name, format, file] of DOCUMENTED) {
      const shot = PAGES.find((page) => page.name === name)!
      await take(browser, session, { shot, format, path: join(folder, `${file}.png`) })
    }
    return
  }
  for (const width of Object.keys(HEIGHTS).map(Number)) {
    for (const theme of ['light', 'dark'] as const) {
      for (const shot of PAGES.filter(({ name }) => values.pages?.split(',').includes(name) ?? true)) {
        const path = join(folder, `${shot.name}-${width}-${theme}.png`)
        await take(browser, session, { shot, format: { width, theme }, path })
      }
    }
  }
}

interface Picture {
  readonly shot: Shot
  readonly format: Format
  readonly path: string
}

async function take(browser: Browser, { origin, state }: SignedIn, { shot, format, path }: Picture): Promise<void> {
  const { width, theme } = format
  const viewport = { width, height: HEIGHTS[width]! }
  const context = await browser.newContext({
    viewport,
    colorScheme: theme,
    storageState: state,
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  try {
    await page.goto(new URL(shot.path, origin).href)
    await page.getByText(shot.text).first().waitFor({ timeout: 15_000, state: 'attached' })
    await shot.prepare?.(page)
    await sleep(800)
    // The whole page, unless it is a long list.
    const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
    if (values.out !== undefined)
      await page.setViewportSize({ width, height: Math.min(Math.max(height, viewport.height), 1500) })
    await page.screenshot({ path })
    console.log(path)
  } catch (error) {
    console.error(`${shot.name} ${width} ${theme}: ${error instanceof Error ? error.message.split('\n')[0] : error}`)
    process.exitCode = 1
  } finally {
    await context.close()
  }
}
