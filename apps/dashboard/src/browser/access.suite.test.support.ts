import type { IssuedApiKey } from '@sluice/contract'
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
