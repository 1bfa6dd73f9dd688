import { SluiceError } from '@sluice/core'
import { can } from '@sluice/core/options'

/** The frameworks that there is an entry for, and the line that a limit takes there. */
const LINES = {
  express: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  fastify: 'await app.register(rateLimit, { limit: 100, window: "1m" })',
  hono: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  koa: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  nest: 'imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })]',
  fetch: 'export const GET = rateLimit({ limit: 100, window: "1m" })(handler)',
} as const

type Framework = keyof typeof LINES

/** What a framework calls middleware with. */
interface FrameworkMatch {
  /** Undefined where there is no entry for it. */
  readonly framework: Framework | undefined
  /** How it is called in messages. */
  readonly what: string
  fits(value: object): boolean
}

/** From the particular to the general: every one is looked at by what the later ones do not have. */
const FORMS: readonly FrameworkMatch[] = [
  { framework: 'fastify', what: 'an app of Fastify', fits: (value) => can(value, 'decorateRequest') },
  { framework: 'fastify', what: 'a request of Fastify', fits: (value) => 'routeOptions' in value && 'raw' in value },
  { framework: 'nest', what: 'a call of Nest', fits: (value) => can(value, 'switchToHttp') },
  { framework: 'hono', what: 'a context of Hono', fits: (value) => 'req' in value && can(value.req, 'header') },
  { framework: 'koa', what: 'a context of Koa', fits: (value) => 'req' in value && 'originalUrl' in value },
  { framework: 'fetch', what: 'a Request', fits: (value) => can(value, 'clone') && can(value, 'formData') },
  { framework: 'express', what: 'a request of Express', fits: (value) => 'baseUrl' in value && 'socket' in value },
  { framework: undefined, what: 'a request of Node', fits: (value) => 'method' in value && 'socket' in value },
  { framework: undefined, what: 'a request', fits: (value) => 'method' in value && 'url' in value },
]

/** What of a framework a value is; undefined when it is nothing that middleware is called with. */
export function detectFramework(value: unknown): Omit<FrameworkMatch, 'fits'> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return FORMS.find((form) => form.fits(value))
}

/**
 * The error of a limiter for `framework` that was called with something else than that framework calls it with: most often
 * because `rateLimit` was imported from the entry of another one.
 */
export function wrongFrameworkError(framework: Framework, context: unknown): SluiceError {
  const form = detectFramework(context)
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `the limiter for ${framework} was called with ${form === undefined ? 'something else' : form.what}`,
    ...(form === undefined ? { received: context } : {}),
    expected: `it where ${framework} calls it: ${LINES[framework]}`,
    ...(form === undefined || form.framework === framework ? {} : { action: importHint(form.framework) }),
  })
}

/** Throws that error; for an app of Fastify by promise, because Fastify does not catch what a plugin throws. */
export function throwWrongFramework(framework: Framework, context: unknown): Promise<never> {
  const error = wrongFrameworkError(framework, context)
  if (can(context, 'decorateRequest')) return Promise.reject(error)
  throw error
}

/** What to import for a framework. */
export function importHint(framework: Framework | undefined): string {
  if (framework === undefined) {
    return 'For this framework make a limiter by createHttpLimiter of "sluice/middleware"; in Nest import RateLimitModule from "sluice/nest".'
  }
  const name = framework === 'nest' ? 'RateLimitModule' : 'rateLimit'
  return `Import ${name} from "sluice/${framework}", and write: ${LINES[framework]}`
}
