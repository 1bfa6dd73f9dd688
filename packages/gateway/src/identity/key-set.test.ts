import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { testIssuer } from './issuer.test.support.ts'
import { KeySet, KeySetUnavailable } from './key-set.ts'

async function scene() {
  const clock = new FakeClock()
  const issuer = await testIssuer()
  const state = { reads: 0, isDown: false, text: undefined as string | undefined }
  const loads: (string | undefined)[] = []
  const read = async (): Promise<string> => {
    state.reads++
    await Promise.resolve()
    if (state.isDown) throw new Error('connection refused')
    return state.text ?? issuer.keySet()
  }
  const onLoad = (error: Error | undefined): void => void loads.push(error?.message)
  const keys = new KeySet({ read, clock, random: () => 0.5, onLoad })
  const find = (kid: string) => keys.find({ alg: 'ES256', kid })
  return { clock, issuer, state, loads, keys, find }
}

describe('a key set', () => {
  it('is loaded once for all that wait for it', async () => {
    const { keys, state, find } = await scene()
    const found = await Promise.all([keys.refresh(), find('one'), find('one'), find('one')])
    expect(found.slice(1).map((each) => each?.length)).toEqual([1, 1, 1])
    expect([state.reads, keys.revision, keys.stats().keys]).toEqual([1, 1, 1])
  })

  it('stays in use while the issuer is unavailable, however long, and is tried again ever less often', async () => {
    const { clock, state, find, keys, loads } = await scene()
    await find('one')
    state.isDown = true
    for (let minute = 0; minute < 600; minute++) {
      clock.advance(60_000)
      expect(await find('one')).toHaveLength(1)
    }
    // 10 hours of failures: 1, 2, 4 ... 256 s apart, then 5 minutes. A try comes with the next use, once a minute here.
    expect(state.reads).toBe(125)
    expect(keys.stats()).toMatchObject({ keys: 1, problem: 'connection refused' })
    state.isDown = false
    clock.advance(5 * 60_000)
    await find('one')
    await keys.refresh()
    expect(keys.stats()).toMatchObject({ failures: 0, problem: undefined })
    expect(loads.at(-1)).toBeUndefined()
  })

  it('does not make those wait who use it when it is loaded again', async () => {
    const { clock, keys, find, state } = await scene()
    await find('one')
    clock.advance(10 * 60_000)
    let isDone = false
    const refreshing = keys.refresh().then(() => {
      isDone = true
    })
    const found = find('one').then((each) => [each.length, isDone])
    await refreshing
    expect([(await found)[0], state.reads]).toEqual([1, 2])
  })

  it('is loaded again for an unknown key id, once in 30 s', async () => {
    const { clock, issuer, state, find } = await scene()
    await find('one')
    await issuer.addKey('two')
    await expect(find('two')).rejects.toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' })
    expect(state.reads).toBe(1)
    clock.advance(30_000)
    const found = await Promise.all([find('two'), find('two'), find('one')])
    expect([found.map((each) => each.length), state.reads]).toEqual([[1, 1, 1], 2])
    for (let index = 0; index < 100; index++) {
      await expect(find(`made-up-${index}`)).rejects.toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' })
    }
    expect(state.reads).toBe(2)
    clock.advance(30_000)
    await expect(find('made-up')).rejects.toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' })
    expect(state.reads).toBe(3)
  })

  it('that was never loaded says when it is tried again, and causes no request before', async () => {
    const { clock, state, find, keys } = await scene()
    state.isDown = true
    for (let attempt = 0; attempt < 10; attempt++) {
      await expect(find('one')).rejects.toMatchObject({ name: 'KeySetUnavailable', retryAfterMs: 1000 })
    }
    expect(state.reads).toBe(1)
    clock.advance(1000)
    await expect(find('one')).rejects.toMatchObject({ retryAfterMs: 2000 })
    expect([state.reads, keys.stats().failures]).toEqual([2, 2])
    state.isDown = false
    clock.advance(2000)
    expect(await find('one')).toHaveLength(1)
    expect(new KeySetUnavailable(1).message).toBe('no key set was loaded yet')
  })

  it.each(['{"keys":[]}', '{"keys":{}}', 'not JSON', '[]', '<html>'])(
    'in its place, %s is a failure and changes nothing',
    async (text) => {
      const { clock, state, find, keys } = await scene()
      await find('one')
      state.text = text
      clock.advance(10 * 60_000)
      await keys.refresh()
      expect([await find('one'), keys.stats().failures, keys.revision]).toMatchObject([[{}], 1, 1])
    },
  )

  it('has another revision only when its content is another', async () => {
    const { clock, issuer, keys } = await scene()
    await keys.refresh()
    clock.advance(10 * 60_000)
    await keys.refresh()
    expect(keys.revision).toBe(1)
    issuer.removeKey('one')
    await issuer.addKey('two')
    clock.advance(10 * 60_000)
    await keys.refresh()
    expect(keys.revision).toBe(2)
  })
})
