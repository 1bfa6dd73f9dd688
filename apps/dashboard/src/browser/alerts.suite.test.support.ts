import { describe, expect, it } from 'vitest'
import { accessibilityProblems } from './browser.test.support.ts'
import type { Running } from './real-service.test.support.ts'
import { openSignedIn } from './real-service.test.support.ts'
import type { WebhookReceiver } from './webhook-receiver.test.support.ts'

const CALLS = 600

/** The alerts of the real service. `receiver`: where it sends them, which rejects all at first. */
export function alertsSuite(running: Running, receiver: () => WebhookReceiver): void {
  describe('alerts', () => {
    it('fire, are acknowledged and silenced, and are sent again when they did not arrive', async () => {
      const { service } = running()
      await service.admin('PUT', '/admin/blocks', { dimension: 'user', entity: 'oscar', duration: '1h' })
      const calls = Array.from({ length: CALLS }, () => service.check({ user: 'oscar', resource: '/orders' }))
      expect(new Set(await Promise.all(calls))).toEqual(new Set([429]))
      const { page, problems } = await openSignedIn(running(), '/alerts')
      const alert = page.getByRole('listitem').filter({ hasText: 'denial-rate' })
      await alert.getByText('firing', { exact: true }).waitFor()
      await alert.getByText('bound 80%').waitFor()
      expect(await accessibilityProblems(page)).toEqual([])

      await alert.getByRole('button', { name: 'Acknowledge' }).click()
      await page.getByLabel('Note').fill('a load test')
      await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge' }).click()
      await alert.getByText(/^Acknowledged by .*: a load test$/).waitFor()
      expect(await alert.getByRole('button', { name: 'Acknowledge' }).count()).toBe(0)

      await alert.getByRole('button', { name: 'Silence' }).click()
      await page.getByLabel('For how long').fill('30m')
      await page.getByLabel('Note').fill('until it is over')
      await page.getByRole('dialog').getByRole('button', { name: 'Silence' }).click()
      await alert.getByText(/^Silenced by .* until .*: until it is over$/).waitFor()

      const letter = page.getByRole('row', { name: /^alert / })
      await letter.getByText('400').waitFor()
      receiver().take()
      await letter.getByRole('button', { name: 'Retry' }).click()
      await page.getByText('Every message arrived.').waitFor()
      expect(receiver().taken).toEqual(['alert.firing'])
      expect(problems).toEqual([])
      await page.context().close()
    })
  })
}
