import type { DecisionLike } from '@sluice/contract'
import { Hono } from 'hono'
import { expectTypeOf } from 'vitest'
import { rateLimit } from './hono.ts'

interface AppEnv {
  Bindings: { ADDRESS: string }
  Variables: { userId: string }
}

const app = new Hono<AppEnv>()

// One line, in an app with or without an environment of its own.
app.use(rateLimit({ limit: 100, window: '1m' }))
app.use('/api/*', rateLimit({ limit: 100, window: '1m', key: (c) => c.req.header('x-account') }))
new Hono().use(rateLimit({ limit: 100, window: '1m' }))

// The environment is known where it is named.
app.use(rateLimit<AppEnv>({ limit: 100, window: '1m', address: (c) => c.env.ADDRESS, key: (c) => c.get('userId') }))

app.get('/', rateLimit({ limit: 5, window: '1s' }), (c) => {
  expectTypeOf(c.get('rateLimit')).toEqualTypeOf<DecisionLike | undefined>()
  return c.text(c.get('userId'))
})

// @ts-expect-error: a duration is not any string
app.use(rateLimit({ limit: 100, window: 'often' }))
