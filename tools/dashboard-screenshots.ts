// `npm run screenshots`: starts the demo and writes the pictures of the documentation to docs/images.
// --out <folder>: every page at 1440, 1024 and 390 pixels, light and dark, into this folder instead.
// --pages <names>: only these, such as decisions,usage.
// --widths <numbers>: only these, such as 1024,390.
// --wait-seconds <number>: how long traffic runs before the first picture. Default: 90.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { startBrowser } from './browser.ts'
import { ExampleProcess } from './examples-process.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

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
  options: {
    out: { type: 'string' },
    pages: { type: 'string' },
    widths: { type: 'string' },
    'wait-seconds': { type: 'string', default: '90' },
  },
})

await runTool(async () => {
  const browser = await startBrowser()
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
  try {
    const link = await demo.printed(/(http:\/\/localhost:\d+\/[\w-]{22})/)
    const session = await signedIn(browser, link)
    await sleep(Number(values['wait-seconds']) * 1000)
    await takeAll(browser, session)
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
  for (const { format, pictures } of values.out === undefined ? documentedPictures() : allPictures()) {
    const context = await browser.newContext({
      viewport: viewportOf(format),
      colorScheme: format.theme,
      storageState: session.state,
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    for (const { shot, file } of pictures) {
      await take(page, session.origin, { shot, format, path: join(folder, `${file}.png`) })
    }
    await context.close()
  }
}

/** What to take in one format. */
interface Pictures {
  readonly format: Format
  readonly pictures: readonly { readonly shot: Shot; readonly file: string }[]
}

function documentedPictures(): readonly Pictures[] {
  return DOCUMENTED.map(([name, format, file]) => ({
    format,
    pictures: [{ shot: PAGES.find((page) => page.name === name)!, file }],
  }))
}

function allPictures(): readonly Pictures[] {
  const shots = PAGES.filter(({ name }) => values.pages?.split(',').includes(name) ?? true)
  const widths = Object.keys(HEIGHTS).filter((width) => values.widths?.split(',').includes(width) ?? true)
  return widths.map(Number).flatMap((width) =>
    (['light', 'dark'] as const).map((theme) => ({
      format: { width, theme },
      pictures: shots.map((shot) => ({ shot, file: `${shot.name}-${width}-${theme}` })),
    })),
  )
}

function viewportOf({ width }: Format): { width: number; height: number } {
  return { width, height: HEIGHTS[width]! }
}

interface Picture {
  readonly shot: Shot
  readonly format: Format
  readonly path: string
}

async function take(page: Page, origin: string, { shot, format, path }: Picture): Promise<void> {
  const { width, height } = viewportOf(format)
  try {
    await page.setViewportSize({ width, height })
    await page.goto(new URL(shot.path, origin).href)
    await page.getByText(shot.text).first().waitFor({ timeout: 15_000, state: 'attached' })
    await page.getByText('Loading', { exact: true }).first().waitFor({ timeout: 15_000, state: 'detached' })
    await shot.prepare?.(page)
    // The whole page, unless it is a long list.
    const whole = Number(await page.evaluate('document.documentElement.scrollHeight'))
    if (values.out !== undefined) await page.setViewportSize({ width, height: Math.min(Math.max(whole, height), 1500) })
    await sleep(800)
    await page.screenshot({ path })
    console.log(path)
  } catch (error) {
    console.error(`${shot.name} ${width} ${format.theme}: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
