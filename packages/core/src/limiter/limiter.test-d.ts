import { deferredStore } from '@sluice/testing'
import { expectTypeOf } from 'vitest'
import type { Duration } from '../rule/duration.ts'
import type { GcraRule, Rule } from '../rule/rule.ts'
import { fixedWindow, slidingWindowLog } from '../rule/rule.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Settlement, Store } from '../store/store.ts'
import { createLimiter } from './create-any-limiter.ts'
import type { Allowed, Decision, Denied, DenyReason } from './decision.ts'
import type { Limiter, LimiterSet } from './limiter.ts'
import type { Reservation } from './reservation.ts'

const rule = { limit: 10, window: '1m' } as const

// A local store answers at once.
const local = createLimiter(rule)
expectTypeOf(local).toEqualTypeOf<Limiter<'sync'>>()
expectTypeOf(local.tryAcquire('key')).toEqualTypeOf<boolean>()
expectTypeOf(local.check('key')).toEqualTypeOf<Decision<'sync'>>()
expectTypeOf(local.checkAll([{ key: 'a' }])).toEqualTypeOf<Decision<'sync'>>()
expectTypeOf(local.reserve('key')).toEqualTypeOf<Reservation<'sync'> | Denied<'sync'>>()
expectTypeOf(local.refund(local.check('key'))).toEqualTypeOf<Settlement>()
expectTypeOf(local.reset('key')).toEqualTypeOf<void>()
expectTypeOf(createLimiter({ ...rule, store: memoryStore() })).toEqualTypeOf<Limiter<'sync'>>()

// A local store always knows what is left; a remote one may not have answered.
expectTypeOf(local.check('key').remaining).toEqualTypeOf<number>()
expectTypeOf<Decision<'async'>['remaining']>().toEqualTypeOf<number | null>()
expectTypeOf<Decision<'sync'>>().toExtend<Decision>()
expectTypeOf<Limiter<'sync'>>().toExtend<Limiter>()

// A remote one by promise; waiting is always a promise.
const remote = createLimiter({ ...rule, store: deferredStore(memoryStore()) })
expectTypeOf(remote).toEqualTypeOf<Limiter<'async'>>()
expectTypeOf(remote.tryAcquire('key')).toEqualTypeOf<Promise<boolean>>()
expectTypeOf(remote.check('key')).toEqualTypeOf<Promise<Decision<'async'>>>()
expectTypeOf(remote.reserve('key')).toEqualTypeOf<Promise<Reservation<'async'> | Denied<'async'>>>()
expectTypeOf(remote.block('key', '1h')).toEqualTypeOf<Promise<void>>()
expectTypeOf(local.acquire('key')).toEqualTypeOf<Promise<Decision<'sync'>>>()
expectTypeOf(remote.acquire('key')).toEqualTypeOf<Promise<Decision<'async'>>>()

// A store of either kind must be awaited.
declare const either: Store
expectTypeOf(createLimiter({ ...rule, store: either }).tryAcquire('key')).toEqualTypeOf<boolean | Promise<boolean>>()

// `allowed` discriminates a reservation from a denial.
const answer = local.reserve('key')
if (answer.allowed) expectTypeOf(answer).toEqualTypeOf<Reservation<'sync'>>()
else expectTypeOf(answer).toEqualTypeOf<Denied<'sync'>>()

// A decision says why.
const decision = local.check('key')
if (decision.allowed) {
  expectTypeOf(decision).toEqualTypeOf<Allowed<'sync'>>()
  expectTypeOf(decision.retryAfterMs).toEqualTypeOf<0>()
} else {
  expectTypeOf(decision.reason).toEqualTypeOf<DenyReason>()
}
// @ts-expect-error a decision is not written to
decision.remaining = 5

// Rules are known by name.
const set = createLimiter({ rules: { login: rule, search: { algorithm: 'fixed-window', limit: 5, window: '1s' } } })
expectTypeOf(set).toEqualTypeOf<LimiterSet<'login' | 'search', 'sync'>>()
expectTypeOf(set.limiter('login')).toEqualTypeOf<Limiter<'sync'>>()
set.checkAll([{ rule: 'search', key: 'a', cost: 2 }])
// @ts-expect-error there is no such rule
set.limiter('logout')
// @ts-expect-error there is no such rule
set.checkAll([{ rule: 'logout', key: 'a' }])
expectTypeOf(createLimiter({ rules: { login: rule }, store: deferredStore(memoryStore()) }).checkAll([])).toEqualTypeOf<
  Promise<Decision<'async'>>
>()

// Durations are numbers with a unit.
expectTypeOf<'250ms'>().toExtend<Duration>()
expectTypeOf<'1m'>().toExtend<Duration>()
expectTypeOf<'1.5h'>().toExtend<Duration>()
expectTypeOf<'10 s'>().toExtend<Duration>()
expectTypeOf<'1h30m'>().toExtend<Duration>()
expectTypeOf<5000>().toExtend<Duration>()
expectTypeOf<'abc'>().not.toExtend<Duration>()
expectTypeOf<'5'>().not.toExtend<Duration>()
expectTypeOf<'5y'>().not.toExtend<Duration>()
expectTypeOf<'m5'>().not.toExtend<Duration>()
expectTypeOf<''>().not.toExtend<Duration>()

// A rule has the options of its algorithm.
expectTypeOf<{ limit: 5; window: '1m' }>().toExtend<Rule>()
expectTypeOf<{ algorithm: 'gcra'; limit: 5; window: '1m'; burst: 2 }>().toExtend<GcraRule>()
expectTypeOf<{ algorithm: 'token-bucket'; capacity: 5; refillPerSecond: 1 }>().toExtend<Rule>()
expectTypeOf<{ algorithm: 'token-bucket'; capacity: 5 }>().not.toExtend<Rule>()
expectTypeOf<{ limit: 5 }>().not.toExtend<Rule>()
expectTypeOf<{ limit: 5; windows: [{ limit: 5; window: '1m' }] }>().not.toExtend<Rule>()
expectTypeOf<{ limit: '5'; window: '1m' }>().not.toExtend<Rule>()
expectTypeOf<{ limit: 'off'; window: '1m' }>().toExtend<Rule>()
fixedWindow({ limit: 5, window: { calendar: 'month', timeZone: 'Europe/Berlin', weekStart: 'sunday' } })
// @ts-expect-error only windows that begin and end follow the calendar
slidingWindowLog({ limit: 5, window: { calendar: 'month' } })
// @ts-expect-error there is no such period
fixedWindow({ limit: 5, window: { calendar: 'year' } })
// @ts-expect-error a rule needs a window
createLimiter({ limit: 5 })
// @ts-expect-error a key is a string
local.check(5)
