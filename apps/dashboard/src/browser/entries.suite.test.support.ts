import type { Page, RuleSet, Version } from '@sluice/contract'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Running } from './real-service.test.support.ts'
import { openSignedIn } from './real-service.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'

const DAILY = 5

/** What the tabs beside the rules do for single callers, against the real service. */
export function entriesSuite(running: Running): void {
  describe('entries', () => {
    let service: RunningService

    beforeAll(async () => {
      ;({ service } = running())
      const ruleSet: RuleSet = { rules: [{ resource: '/export', dimension: 'user', limit: DAILY, window: '1d' }] }
      const { items } = await service.admin<Page<Version>>('GET', '/admin/versions')
      const draft = { ruleSet, basedOn: items.find(({ stage }) => stage === 'enforce')!.number }
      const { number } = await service.admin<Version>('POST', '/admin/versions', draft)
      await service.admin('POST', `/admin/versions/${number}/stage`, { stage: 'enforce' })
    })

    /** How many more calls of a user are allowed, of the calls that are tried. */
    async function allowedOf(calls: number, user: string): Promise<number> {
      let allowed = 0
      for (let call = 0; call < calls; call++) {
        if ((await service.check({ user, resource: '/export' })) === 200) allowed += 1
      }
      return allowed
    }

    it('puts a caller in a new tier, changes the tier, and takes the caller out', async () => {
      expect(await allowedOf(DAILY + 1, 'zoe')).toBe(DAILY)
      const { page, problems } = await openSignedIn(running(), '/rules?tab=tiers')
      await page.getByRole('button', { name: 'Add', exact: true }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('gold')
      await dialog.getByLabel('Multiplies limits by').fill('2')
      await dialog.getByRole('button', { name: 'Save tier' }).click()
      const tier = page.getByRole('table', { name: 'Tiers', exact: true }).getByRole('row', { name: /^gold/ })
      await tier.waitFor()
      await page.getByLabel('Kind of caller').selectOption('user')
      await page.getByLabel('New member').fill('zoe')
      await page.getByLabel('Tier', { exact: true }).fill('gold')
      await page.getByRole('button', { name: 'Add member' }).click()
      const member = page.getByRole('row', { name: /^user zoe gold/ })
      await member.waitFor()
      expect(await allowedOf(DAILY + 1, 'zoe')).toBe(DAILY)
      await tier.getByRole('button', { name: 'Edit' }).click()
      await dialog.getByLabel('Multiplies limits by').fill('3')
      await dialog.getByRole('button', { name: 'Save tier' }).click()
      await tier.getByText(/3/).waitFor()
      expect(await allowedOf(DAILY + 1, 'zoe')).toBe(DAILY)
      await member.getByRole('button', { name: 'Remove' }).click()
      await member.waitFor({ state: 'detached' })
      expect(await allowedOf(1, 'zoe')).toBe(0)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('adds an exemption, changes whom it is for, and removes it', async () => {
      const { page, problems } = await openSignedIn(running(), '/rules?tab=exemptions')
      await page.getByRole('button', { name: 'Add', exact: true }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('importer')
      await dialog.getByLabel('Dimension').fill('user')
      await dialog.getByLabel('Callers').fill('yan')
      await dialog.getByRole('button', { name: 'Save' }).click()
      const row = page.getByRole('row', { name: /^importer/ })
      await row.getByText('yan').waitFor()
      expect(await allowedOf(DAILY + 3, 'yan')).toBe(DAILY + 3)
      await row.getByRole('button', { name: 'Edit' }).click()
      await dialog.getByLabel('Callers').fill('xia')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await row.getByText('xia').waitFor()
      expect([await allowedOf(DAILY + 3, 'yan'), await allowedOf(DAILY + 3, 'xia')]).toEqual([DAILY, DAILY + 3])
      await row.getByRole('button', { name: 'Remove' }).click()
      await page.getByText('No exemptions: the rules are for every request.').waitFor()
      expect(await allowedOf(DAILY + 3, 'xia')).toBe(DAILY)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('blocks a caller that was found, and lifts the block', async () => {
      const { page, problems } = await openSignedIn(running(), '/rules?tab=blocks')
      await page.getByLabel('Dimension').fill('user')
      await page.getByLabel('Caller', { exact: true }).fill('walt')
      await page.getByRole('button', { name: 'Find', exact: true }).click()
      await page.getByRole('button', { name: 'Block this caller' }).click()
      await page.getByLabel('For how long').fill('15m')
      await page.getByLabel('Reason').fill('too many exports')
      await page.getByRole('dialog').getByRole('button', { name: 'Block', exact: true }).click()
      const row = page.getByRole('row', { name: /^user walt/ })
      await row.getByText(/^too many exports, by/).waitFor()
      expect(await allowedOf(1, 'walt')).toBe(0)
      await row.getByRole('button', { name: 'Lift' }).click()
      await page.getByText('This caller is not blocked.').waitFor()
      expect(await allowedOf(1, 'walt')).toBe(1)
      expect(problems).toEqual([])
      await page.context().close()
    })
  })
}
