import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ResourceTable } from '../matching/resource-table.ts'

// Routers as servers have them, each with its own idea of what a path means, and none of the code that rules are found
// with. Whatever one of them leads to a route must find the rule of that route, or a caller could spell the path so
// that the limit is not met. Those that run on Node are also asked themselves, by a test of the middleware.

/** The segments that a router compares with its routes; undefined when it rejects the path. */
type Reader = (target: string) => readonly string[] | undefined

/** A router whose parameters stand for something, or for an empty segment too. */
interface Router {
  readonly read: Reader
  readonly fillsParameters?: boolean
}

const withoutQuery = (target: string): string => target.replace(/[?#].*$/, '')

/** Splits a path where a slash at the end is followed by an empty segment. */
const splitWhole = (path: string): readonly string[] => path.slice(1).split('/')

/** Splits a path where a slash at the end makes no difference. */
const split = (path: string): readonly string[] => splitWhole(path.replace(/(?<=.)\/$/, ''))

/** Without empty segments, `.` and `..`; `..` above the root is rejected. */
function cleaned(path: string): readonly string[] | undefined {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..' && kept.pop() === undefined) return undefined
    if (segment !== '' && segment !== '.' && segment !== '..') kept.push(segment)
  }
  return kept.length === 0 ? [''] : kept
}

function decodedOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** All but the characters that have a meaning in URLs, as routers do that decode a path before they split it. */
function decodedSafely(text: string): string | undefined {
  try {
    return decodeURI(text)
  } catch {
    return undefined
  }
}

const ROUTERS: Readonly<Record<string, Router | Reader>> = {
  'compares what came (Express)': (target) => split(withoutQuery(target)),

  'compares what came, with the slash at its end (Express, strict)': (target) => splitWhole(withoutQuery(target)),

  'decodes, then splits at bare slashes, and has empty parameters (Fastify)': {
    read: (target) => {
      const path = decodedSafely(withoutQuery(target))
      return path === undefined ? undefined : splitWhole(path)
    },
    fillsParameters: true,
  },

  'does the same without the slash at the end (Fastify, ignoreTrailingSlash)': {
    read: (target) => {
      const path = decodedSafely(withoutQuery(target))
      return path === undefined ? undefined : split(path)
    },
    fillsParameters: true,
  },

  'does the same with repeated slashes as one (Fastify, ignoreDuplicateSlashes)': {
    read: (target) => {
      const path = decodedSafely(withoutQuery(target))
      return path === undefined ? undefined : splitWhole(path.replace(/\/{2,}/g, '/'))
    },
    fillsParameters: true,
  },

  'takes a semicolon for the beginning of the query (Fastify 4)': {
    read: (target) => {
      const path = decodedSafely(withoutQuery(target).replace(/;.*$/, ''))
      return path === undefined ? undefined : splitWhole(path)
    },
    fillsParameters: true,
  },

  'resolves the target as a URL (URL of Node and browsers)': (target) => {
    const base = 'http://service.example'
    return URL.canParse(target, base) ? split(new URL(target, base).pathname) : undefined
  },

  'resolves the target as a URL and keeps the slash at its end (Hono)': (target) => {
    const whole = `http://service.example${target}`
    return URL.canParse(whole) ? splitWhole(new URL(whole).pathname) : undefined
  },

  'resolves the target as a URL and has empty parameters (Fastify behind a proxy)': {
    read: (target) => {
      const whole = `http://service.example${target}`
      return URL.canParse(whole) ? splitWhole(new URL(whole).pathname) : undefined
    },
    fillsParameters: true,
  },

  'puts the target after its own host (fetch-style adapters)': (target) => {
    const whole = `http://service.example${target}`
    return URL.canParse(whole) ? split(new URL(whole).pathname) : undefined
  },

  'decodes everything, merges slashes, resolves dots (nginx)': (target) => {
    const path = decodedOnce(withoutQuery(target))
    return path === undefined ? undefined : cleaned(path)
  },

  'drops parameters, decodes, turns backslashes, resolves dots (Tomcat)': (target) => {
    const path = decodedOnce(withoutQuery(target).replace(/;[^/]*/g, ''))
    return path === undefined ? undefined : cleaned(path.replaceAll('\\', '/'))
  },

  'the same behind a proxy that has decoded once': (target) => {
    const path = decodedOnce(withoutQuery(target))
    return path === undefined ? undefined : cleaned(path.replaceAll('\\', '/').replace(/;[^/]*/g, ''))
  },

  'splits, then drops parameters and decodes each segment (Spring)': (target) => {
    const segments = split(withoutQuery(target)).map((segment) => decodedOnce(segment.replace(/;.*$/, '')))
    return segments.every((segment) => segment !== undefined) ? segments : undefined
  },

  'decodes everything, keeps the rest, knows no fragments (Go)': (target) => {
    const path = decodedOnce(target.replace(/\?.*$/, ''))
    return path === undefined ? undefined : split(path)
  },

  'splits, then decodes each segment, knows no fragments (Go, patterns)': (target) => {
    const segments = split(target.replace(/\?.*$/, '')).map((segment) => decodedOnce(segment))
    return segments.every((segment) => segment !== undefined) ? segments : undefined
  },

  'cleans a path that knows no fragments (Go, cleaned)': (target) => {
    const path = decodedOnce(target.replace(/\?.*$/, ''))
    return path === undefined ? undefined : cleaned(path)
  },

  'decodes everything, keeps the rest (WSGI)': (target) => {
    const path = decodedOnce(withoutQuery(target))
    return path === undefined ? undefined : split(path)
  },
}

const ROUTES = [
  ...[
    '/',
    '/*',
    '/health',
    '/orders',
    '/orders/:id',
    '/orders/open',
    '/orders/:id/items',
    '/files/*',
    '/:tenant/reports',
  ],
  ...['/:tenant/reports/*', '/orders/:id/:part/x', '/caf%C3%A9', '/:a/:b/:c', '*'],
]

interface Comparison {
  /** In any case of letters, or only in that of the route. */
  readonly anyCase: boolean
  readonly fillsParameters: boolean
}

/** Whether a router would take a path for a route. */
function isRoute(route: string, given: readonly string[], { anyCase, fillsParameters }: Comparison): boolean {
  if (route === '*') return true
  const hasRest = route.endsWith('/*')
  const expected = split(hasRest ? route.slice(0, -2) || '/' : route)
  const isRoot = expected.length === 1 && expected[0] === ''
  if (isRoot) return hasRest || (given.length === 1 && given[0] === '')
  if (hasRest ? given.length < expected.length : given.length !== expected.length) return false
  return expected.every((segment, index) => {
    const part = given[index]!
    if (segment.startsWith(':')) return fillsParameters || part !== ''
    const texts = [segment, decodeURIComponent(segment)]
    return texts.some((text) => (anyCase ? text.toLowerCase() === part.toLowerCase() : text === part))
  })
}

const rules = new ResourceTable(ROUTES.map((route) => ({ pattern: route, methods: undefined, value: route })))

const targets = (): fc.Arbitrary<string> =>
  fc
    .array(
      fc.constantFrom(
        ...[
          '/',
          '/',
          '/',
          '/',
          '//',
          '%2f',
          '%2F',
          '\\',
          '%5c',
          '/./',
          '/../',
          '/..',
          '%2e',
          '%2E%2e',
          '.',
          ';',
          ';x=1',
          '%3b',
        ],
        ...[
          'orders',
          'ORDERS',
          'orders',
          '%6frders',
          'open',
          'o%70en',
          'items',
          'files',
          'health',
          'reports',
          'x',
          '17',
          'caf%C3%A9',
        ],
        ...['#', '?', '?q=/../', '%20', '%', '%252f', '%c0%af', '%00', 'host', ':id', '*'],
      ),
      { minLength: 1, maxLength: 9 },
    )
    .map((pieces) => `/${pieces.join('')}`)

/** Spellings of `/orders/open`. */
const SPELLINGS = [
  ...['/orders/open', '/ORDERS/Open', '/orders/open/', '/orders/open?x=1', '/orders/open#x', '//orders//open//'],
  ...[
    '/%6frders/ope%6E',
    '/%4FRDERS/open',
    '/orders;v=1/open;a;b=c',
    '/orders%2fopen',
    '/orders%2Fopen%2f',
    '/orders\\open',
  ],
  ...['/orders%5copen', '/./orders/./open/.', '/x/../orders/open', '/%2e%2e/orders/open', '/orders/17/%2e%2E/open'],
  ...[
    '/orders/..;/orders/open',
    '/orders;/../orders/open',
    '/x%2f..%2forders/open',
    '/../../orders/open',
    '/orders//../open',
  ],
  ...[
    '/;x/orders/open',
    '//host/orders/open',
    '/\\host/orders/open',
    '/orders/open;x/../../health',
    '/orders/open%3bx',
  ],
  ...['http://host/orders/open', 'HTTP://host//orders/%6fpen'],
]

describe('Path variants: limiter and router agree', () => {
  it.each(['/orders/', '/ORDERS/?x', '/orders//', '/orders/#x', '/orders/;x', '/orders/17/..', '/x/../orders/'])(
    '%s is limited as /orders/:id with nothing in the place of the parameter',
    (spelling) => {
      expect(rules.find(spelling, 'GET')).toContain('/orders/:id')
    },
  )

  it.each(['//reports', '//reports/', '//reports#x'])('%s is limited as /:tenant/reports', (spelling) => {
    expect(rules.find(spelling, 'GET')).toContain('/:tenant/reports')
  })

  it.each(SPELLINGS)('%s is limited as /orders/open', (spelling) => {
    expect(rules.find(spelling, 'GET')).toContain('/orders/open')
  })

  it.each(['/caf%c3%a9', '/caf%C3%A9', '/CAF%C3%89', '/café', '/c%61f%c3%a9/'])(
    '%s is limited as /café',
    (spelling) => {
      expect(rules.find(spelling, 'GET')).toContain('/caf%C3%A9')
    },
  )

  describe.each(Object.entries(ROUTERS))('a router that %s', (_title, router) => {
    const { read, fillsParameters = false } = typeof router === 'function' ? { read: router } : router

    it('leads no spelling past a rule', () => {
      let routed = 0
      fc.assert(
        fc.property(targets(), (target) => {
          const given = read(target)
          if (given === undefined) return
          const taken = ROUTES.filter((route) =>
            [true, false].some((anyCase) => isRoute(route, given, { anyCase, fillsParameters })),
          )
          routed += taken.length
          expect(rules.find(target, 'GET')).toEqual(expect.arrayContaining(taken))
          // They come from one reading: what is most specific for the router is not hidden by another reading.
          const lists = rules.findByReading(target, 'GET')
          expect(lists.some((list) => taken.every((route) => list.includes(route)))).toBe(true)
        }),
        { numRuns: 3000 },
      )
      expect(routed).toBeGreaterThan(3000)
    })

    it('leads no spelling of something else to what is exempt', () => {
      fc.assert(
        fc.property(targets(), (target) => {
          const given = read(target)
          if (given === undefined) return
          // What is said of a path, a rule or an exemption, is said of the path with a slash at its end.
          const said = given.length > 1 && given.at(-1) === '' ? [given, given.slice(0, -1)] : [given]
          const taken = ROUTES.filter((route) =>
            said.some((segments) => isRoute(route, segments, { anyCase: true, fillsParameters })),
          )
          expect(taken).toEqual(expect.arrayContaining([...rules.findCertain(target, 'GET')]))
        }),
        { numRuns: 3000 },
      )
    })
  })
})
