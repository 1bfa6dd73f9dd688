import { SluiceError } from '@sluice/core'
import { can } from '@sluice/core/options'

/** Supported frameworks, with the line that adds a limit. */
const LINES = {
  express: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  fastify: 'await app.register(rateLimit, { limit: 100, window: "1m" })',
  hono: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  koa: 'app.use(rateLimit({ limit: 100, window: "1m" }))',
  nest: 'imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })]',
  fetch: 'export const GET = rateLimit({ limit: 100, window: "1m" })(handler)',
} as const

type Framework = keyof typeof LINES

/** Recognizes what a framework passes to middleware. */
interface FrameworkMatch {
  /** Undefined for frameworks without an adapter. */
  readonly framework: Framework | undefined
  /** Name for messages. */
  readonly what: string
  fits(value: object): boolean
}

/** From specific to general: each is recognized by a property that later ones lack. */
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

/** Which framework object a value is. Undefined if it is none. */
export function detectFramework(value: unknown): Omit<FrameworkMatch, 'fits'> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return FORMS.find((form) => form.fits(value))
}

/**
 * Error for a limiter that was called by another framework, usually because `rateLimit` was imported from the wrong
 * entry.
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

/**
 * Throws {@link wrongFrameworkError}. Rejects for a Fastify app, because Fastify does not catch exceptions of plugins.
 */
export function throwWrongFramework(framework: Framework, context: unknown): Promise<never> {
  const error = wrongFrameworkError(framework, context)
  if (can(context, 'decorateRequest')) return Promise.reject(error)
  throw error
}

/** What to import for a framework. */
export function importHint(framework: Framework | undefined): string {
  if (framework === undefined) {
    return (
      'For this framework make a limiter by createHttpLimiter of "sluice/middleware"; in Nest import ' +
      'RateLimitModule from "sluice/nest".'
    )
  }
  const name = framework === 'nest' ? 'RateLimitModule' : 'rateLimit'
  return `Import ${name} from "sluice/${framework}", and write: ${LINES[framework]}`
}
