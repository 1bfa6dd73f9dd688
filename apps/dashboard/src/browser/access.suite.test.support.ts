import type { IssuedApiKey } from '@sluice/contract'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Running } from './real-service.test.support.ts'
import { openSignedIn } from './real-service.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'

/** Who may use the service, and who is never let in: what these pages do, against the real service. */
export function accessSuite(running: Running): void {
  describe('access', () => {
    let service: RunningService

    beforeAll(() => {
      ;({ service } = running())
    })

    it('lists the sessions of all keys, and ends one', async () => {
      const request = { name: 'on-call', role: 'viewer' }
      const { token } = await service.admin<IssuedApiKey>('POST', '/admin/api-keys', request)
      const other = await openSignedIn(running(), '/nodes', { key: token })
      const { page, problems } = await openSignedIn(running(), '/sessions')
      const row = page.getByRole('row', { name: /^on-call/ })
      await row.getByText(/^Chrome \d+ on Linux$/).waitFor()
      await row.getByRole('button', { name: 'End' }).click()
      await page.getByText('The session of on-call has ended.').waitFor()
      await other.page.getByLabel('API key').waitFor()
      expect(problems).toEqual([])
      await other.page.context().close()
      await page.context().close()
    })

    it('makes an API key, shows it once, puts another in its place, and ends that', async () => {
      const { page, problems } = await openSignedIn(running(), '/api-keys')
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByLabel('Name').fill('deployer')
      await page.getByLabel('Role').selectOption('editor')
      await page.getByRole('button', { name: 'Create key' }).click()
      const first = await savedKey(page)
      expect(await page.content()).not.toContain(first)
      expect(await statusWith(first)).toBe(200)
      const rows = page.getByRole('row', { name: /^deployer/ })
      await rows.getByText('editor').waitFor()
      await rows.getByRole('button', { name: 'Rotate' }).click()
      await page.getByLabel(/^The old key/).selectOption({ label: 'ends at once' })
      await page.getByRole('button', { name: 'Rotate key' }).click()
      const second = await savedKey(page)
      await expect.poll(async () => [await statusWith(first), await statusWith(second)]).toEqual([401, 200])
      await page.reload()
      await expect.poll(() => rows.count()).toBe(2)
      expect(await page.content()).not.toContain(second)
      await rows.getByRole('button', { name: 'Revoke' }).click()
      await page.getByRole('button', { name: 'Revoke key' }).click()
      await page.getByText('deployer has ended.').waitFor()
      await expect.poll(() => statusWith(second)).toBe(401)
      await expect.poll(() => rows.getByRole('button').count()).toBe(0)
      expect(problems).toEqual([])
      await page.context().close()
    })

    /** The key that a dialog shows, which is closed then. */
    async function savedKey(page: Page): Promise<string> {
      const dialog = page.getByRole('dialog', { name: 'Key of deployer' })
      const token = (await dialog.locator('code').innerText()).trim()
      await dialog.getByRole('button', { name: 'I saved it' }).click()
      await dialog.waitFor({ state: 'hidden' })
      return token
    }

    /** How the admin API answers the holder of a key. */
    async function statusWith(token: string): Promise<number> {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${service.url}/admin/versions`, { headers })).status
    }

    it('puts an entry on the deny list and takes it off, and the next request follows', async () => {
      const call = { user: 'ada', ip: '192.0.2.77', resource: '/catalogue' }
      expect(await service.check(call)).toBe(200)
      const { page, problems } = await openSignedIn(running(), '/rules?tab=deny-list')
      await page.getByRole('button', { name: 'Add' }).click()
      await page.getByLabel('Name').fill('test-net')
      await page.getByLabel('Addresses').fill('192.0.2.0/24')
      await page.getByRole('button', { name: 'Save' }).click()
      const row = page.getByRole('row', { name: /^test-net/ })
      await row.getByText('192.0.2.0/24').waitFor()
      await expect.poll(() => service.check(call)).not.toBe(200)
      await row.getByRole('button', { name: 'Remove' }).click()
      await page.getByText('Entry test-net is removed.').waitFor()
      await expect.poll(() => service.check(call)).toBe(200)
      expect(problems).toEqual([])
      await page.context().close()
    })
  })
}
