import type { Version } from '@sluice/contract'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { accessibilityProblems } from './browser.test.support.ts'
import type { Running } from './real-service.test.support.ts'
import { openSignedIn } from './real-service.test.support.ts'
import type { RunningService } from './running-service.test.support.ts'

const ORDERS = { resource: '/orders', dimension: 'user', limit: 100, window: '1m' }
const EXPORT = { resource: '/export', dimension: 'tenant', limit: 10, window: '1h' }

/** Appends to a number, with second thoughts. */
const TYPED = [...Array.from({ length: 8 }, () => ['1', 'Backspace']).flat(), '7']

/** Enough of them that a half has some of them, and not all. */
const CALLERS = Array.from({ length: 20 }, (_, index) => `caller-${index}`)

/** The rule editor against the real service: what is published holds, and two editors lose nothing. */
export function ruleEditorSuite(running: Running): void {
  describe('the rule editor', () => {
    let service: RunningService
    let users = 0

    beforeAll(() => {
      ;({ service } = running())
    })

    beforeEach(async () => {
      await publish([ORDERS, EXPORT])
    })

    async function enforcedVersion(): Promise<number> {
      const { items } = (await service.admin('GET', '/admin/versions')) as {
        items: { number: number; stage: string }[]
      }
      return items.find(({ stage }) => stage === 'enforce')!.number
    }

    /** Enforces these rules, as another editor would. */
    async function publish(rules: readonly object[]): Promise<void> {
      const draft = { ruleSet: { rules }, basedOn: await enforcedVersion() }
      const { number } = (await service.admin('POST', '/admin/versions', draft)) as { number: number }
      await service.admin('POST', `/admin/versions/${number}/stage`, { stage: 'enforce' })
    }

    async function enforcedRules(): Promise<readonly object[]> {
      const version = await service.admin('GET', `/admin/versions/${await enforcedVersion()}`)
      return (version as { ruleSet: { rules: object[] } }).ruleSet.rules
    }

    async function openEditor(query: string): Promise<{ page: Page; problems: readonly string[] }> {
      const opened = await openSignedIn(running(), `/rules/edit${query}`)
      await opened.page.getByRole('heading', { name: 'Edit rules' }).waitFor()
      return opened
    }

    async function reviewAndPublish(page: Page): Promise<void> {
      await page.getByRole('button', { name: 'Review and publish' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Publish', exact: true }).click()
    }

    it('changes a limit, and the next request is denied within a second', async () => {
      const { page, problems } = await openEditor('?rule=/orders@user')
      users += 1
      const call = { user: `user-${users}`, resource: '/orders' }
      expect(await service.check(call)).toBe(200)
      await page.getByLabel('Limit', { exact: true }).fill('1')
      await page.getByText('Each user may call /orders once a minute.').first().waitFor()
      await page.getByRole('button', { name: 'Review and publish' }).click()
      await page.getByLabel('Why').fill('too many orders')
      const beganAt = systemMonotonicMs()
      await page.getByRole('dialog').getByRole('button', { name: 'Publish', exact: true }).click()
      await page.getByText(/Version \d+ is enforced/).waitFor()
      expect(await service.check(call)).toBe(429)
      expect(systemMonotonicMs() - beganAt).toBeLessThan(1000)
      await page.getByText('Each user may call /orders once a minute.').waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('shows problems at their fields and lines, and lets nothing wrong be published', async () => {
      const { page } = await openEditor('?rule=/orders@user')
      await page.getByLabel('Window', { exact: true }).fill('1 fortnight')
      await page.getByText('"1 fortnight" is not a duration').waitFor()
      expect(await page.getByRole('button', { name: 'Review and publish' }).isDisabled()).toBe(true)
      expect(await accessibilityProblems(page)).toEqual([])
      await page.getByRole('button', { name: 'YAML' }).click()
      const text = page.getByLabel('Rule set as YAML')
      await text.fill((await text.inputValue()).replace('"1 fortnight"', '30s').replace('limit: 100', 'limit: many'))
      await page.getByRole('button', { name: 'Line 4' }).waitFor()
      await page.getByText('/rules/0/limit: "many" is not').waitFor()
      await text.fill((await text.inputValue()).replace('many', '7'))
      await page.getByRole('button', { name: 'Form' }).click()
      await page.getByText('Each user may call /orders 7 times every 30 seconds.').first().waitFor()
      await page.context().close()
    })

    it('lets a long text be typed without delay, and publishes what was typed last', async () => {
      const others = Array.from({ length: 1000 }, (_, index) => ({ ...EXPORT, resource: `/export/${index}` }))
      await publish([ORDERS, ...others])
      const { page, problems } = await openEditor('?view=yaml')
      await page.getByLabel('Rule set as YAML').focus()
      await page.evaluate(() => {
        const area = document.activeElement as HTMLTextAreaElement
        const end = area.value.indexOf('limit: 100') + 'limit: 100'.length
        area.setSelectionRange(end, end)
        new PerformanceObserver((list) => {
          const total = Number(document.body.dataset['longTasks'] ?? 0) + list.getEntries().length
          document.body.dataset['longTasks'] = String(total)
        }).observe({ type: 'longtask' })
      })
      for (const key of TYPED) await page.keyboard.press(key)
      const longTasks = await page.evaluate(() => Number(document.body.dataset['longTasks'] ?? 0))
      expect(longTasks).toBeLessThan(TYPED.length / 3)
      await reviewAndPublish(page)
      await page.getByText(/is enforced/).waitFor()
      expect((await enforcedRules())[0]).toEqual({ ...ORDERS, limit: 1007 })
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('keeps an edit over a reload', async () => {
      const { page } = await openEditor('?rule=new')
      await page.getByLabel('Resource').fill('/login')
      await page.getByLabel('Counts').selectOption('ip')
      await page.reload()
      await page.getByText('This is the edit that you began before the page was loaded.').waitFor()
      await reviewAndPublish(page)
      await page.getByText(/is enforced/).waitFor()
      expect(await enforcedRules()).toEqual([
        ORDERS,
        EXPORT,
        { resource: '/login', dimension: 'ip', limit: 100, window: '1m' },
      ])
      await page.context().close()
    })

    it('shows two editors to each other, and loses neither', async () => {
      const { page, problems } = await openEditor('?rule=/orders@user')
      await page.getByLabel('Limit', { exact: true }).fill('80')
      await publish([
        { ...ORDERS, limit: 60 },
        { ...EXPORT, limit: 20 },
      ])
      await page.getByText(/is enforced by now; your edit began with version/).waitFor()
      await reviewAndPublish(page)
      const dialog = page.getByRole('dialog', { name: 'Somebody else published' })
      await dialog.getByText('Both changed').waitFor()
      expect(await accessibilityProblems(page)).toEqual([])
      await dialog.getByRole('button', { name: 'Put both together' }).click()
      await page.getByText('Changes: 1').waitFor()
      await reviewAndPublish(page)
      await page.getByText(/is enforced/).waitFor()
      expect(await enforcedRules()).toEqual([
        { ...ORDERS, limit: 80 },
        { ...EXPORT, limit: 20 },
      ])
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('puts the changes of a draft on top of what was enforced meanwhile, and retires the draft', async () => {
      const basedOn = await enforcedVersion()
      const rules = [{ ...ORDERS, limit: 70 }, EXPORT]
      const draft = (await service.admin('POST', '/admin/versions', { ruleSet: { rules }, basedOn })) as Version
      await publish([ORDERS, { ...EXPORT, limit: 30 }])
      const { page, problems } = await openSignedIn(running(), '/rules?tab=versions')
      const row = page.getByRole('row', { name: new RegExp(`^${draft.number} draft`) })
      await row.getByRole('button', { name: 'Edit' }).click()
      await page.getByText(`your edit began with version ${basedOn}.`).waitFor()
      await page.goBack()
      await row.getByRole('button', { name: 'Edit' }).click()
      await page.getByRole('dialog', { name: 'You are editing rules' }).waitFor()
      await page.getByRole('button', { name: 'Go on with the edit' }).click()
      await page.getByRole('button', { name: 'Compare and merge' }).click()
      await page.getByText('Both sets of changes fit together.').waitFor()
      await page.getByRole('button', { name: 'Put both together' }).click()
      await reviewAndPublish(page)
      await page.getByText(/is enforced/).waitFor()
      expect(await enforcedRules()).toEqual([
        { ...ORDERS, limit: 70 },
        { ...EXPORT, limit: 30 },
      ])
      await page.getByRole('tab', { name: 'Versions' }).click()
      await row.getByRole('button', { name: 'Retire' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Retire', exact: true }).click()
      await row.waitFor({ state: 'detached' })
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('restores a newer version after a rollback', async () => {
      const before = await enforcedVersion()
      await publish([{ ...ORDERS, limit: 50 }, EXPORT])
      await service.admin('POST', '/admin/versions/rollback', { to: before })
      const { page } = await openSignedIn(running(), '/rules?tab=versions')
      const newer = page.getByRole('row', { name: new RegExp(`^${before + 1} retired`) })
      await newer.getByRole('button', { name: 'Restore' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
      await page.getByText(`version ${before + 1}`, { exact: true }).waitFor()
      expect(await enforcedVersion()).toBe(before + 1)
      await page.context().close()
    })

    /** Whether the third call of a caller is denied. */
    async function isDeniedThird(user: string): Promise<boolean> {
      const call = { user, resource: '/orders' }
      expect([await service.check(call), await service.check(call)]).toEqual([200, 200])
      return (await service.check(call)) === 429
    }

    it('measures a version first, enforces it for a share and for all, and rolls it back', async () => {
      const { page, problems } = await openEditor('?rule=/orders@user')
      const before = await enforcedVersion()
      await page.getByLabel('Limit', { exact: true }).fill('2')
      await page.getByRole('button', { name: 'Review and publish' }).click()
      await page.getByRole('button', { name: 'Shadow', exact: true }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Publish', exact: true }).click()
      await page.getByText(`Version ${before + 1} is measured.`).waitFor()
      expect(await enforcedVersion()).toBe(before)
      for (let calls = 0; calls < 5; calls++)
        expect(await service.check({ user: 'ghost', resource: '/orders' })).toBe(200)
      await page.getByRole('figure', { name: `What version ${before + 1} would also deny` }).waitFor()
      await page.getByText('Would also deny', { exact: true }).locator('..').getByText(/^3/).waitFor()
      await page.getByRole('button', { name: 'Enforce for a share' }).click()
      await page.getByLabel('Share of callers in percent').fill('50')
      await page.getByRole('button', { name: 'Enforce for this share' }).click()
      const candidate = page.getByRole('row', { name: new RegExp(`^${before + 1} 50% of callers`) })
      await candidate.waitFor()
      const denied = (await Promise.all(CALLERS.map((user) => isDeniedThird(user)))).filter(Boolean).length
      expect([denied > 0, denied < CALLERS.length]).toEqual([true, true])
      await candidate.getByRole('button', { name: 'Enforce' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Enforce', exact: true }).click()
      await page.getByText(`version ${before + 1}`, { exact: true }).waitFor()
      expect(await enforcedVersion()).toBe(before + 1)
      await page.getByRole('tab', { name: 'Versions' }).click()
      await page
        .getByRole('row', { name: new RegExp(`^${before} retired`) })
        .getByRole('button', { name: 'Roll back' })
        .click()
      await page.getByText('limit').first().waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
      await page.getByText(`version ${before}`, { exact: true }).waitFor()
      expect(await enforcedVersion()).toBe(before)
      expect(problems).toEqual([])
      await page.context().close()
    })
  })
}
