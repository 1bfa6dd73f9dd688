import { existsSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { ToolError } from './tool-error.ts'

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/**
 * Starts the Chromium of this machine, with an empty profile.
 *
 * @throws ToolError `NO_BROWSER`
 */
export function startBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find((path) => existsSync(path))
  if (executablePath === undefined) {
    throw new ToolError('NO_BROWSER', `None of ${PROGRAMS.join(', ')} exists. Install the Debian package chromium.`)
  }
  // Root has no sandbox of users; the pages are ours.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
  return chromium.launch({ executablePath, args })
}
