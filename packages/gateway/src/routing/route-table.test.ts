import { memoryStore } from '@sluice/core'
import { PolicyEngine, type PolicyRule } from '@sluice/core/policy'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { targetRewriter } from './path.ts'
import { type RoutedRequest, type RouteEntry, RouteTable } from './route-table.ts'

type Match = Partial<Pick<RouteEntry<string>, 'hosts' | 'path' | 'methods' | 'headers' | 'protection'>>

/** A table of routes by name. Routes protect differently, unless they say otherwise. */
function tableOf(routes: Readonly<Record<string, Match>>): RouteTable<string> {
  return new RouteTable(
    Object.entries(routes).map(([name, match]) => ({
      hosts: undefined,
      path: '*',
      methods: undefined,
      headers: [],
      protection: name,
      ...match,
      value: name,
    })),
  )
}

interface Asked {
  readonly method?: string
  readonly host?: string
  readonly headers?: Readonly<Record<string, string>>
}

function ask(path: string, { method = 'GET', host, headers = {} }: Asked = {}): RoutedRequest {
  return { method, host, path, header: (name) => headers[name] }
}

describe('the route of a request', () => {
  it('is the one with the most specific path, then the first', () => {
    const table = tableOf({
      all: {},
      below: { path: '/orders/*' },
      item: { path: '/orders/:id' },
      open: { path: '/orders/open' },
      deep: { path: '/orders/:id/items/*' },
    })
    const paths = [
      '/',
      '/orders',
      '/orders/17',
      '/orders/open',
      '/orders/17/items/3?a=/b',
      '/orders/17/x',
      '/Orders/OPEN',
    ]
    expect(paths.map((path) => table.find(ask(path)))).toEqual([
      'all',
      'below',
      'item',
      'open',
      'deep',
      'below',
      'open',
    ])
    const same = tableOf({ one: { path: '/a', methods: ['GET'] }, two: { path: '/a', methods: ['GET'] } })
    expect(same.find(ask('/a'))).toBe('one')
  })

  it('is undefined without one', () => {
    const table = tableOf({ a: { path: '/a', methods: ['POST'], hosts: ['x.com'] } })
    expect(table.find(ask('/a', { method: 'GET', host: 'x.com' }))).toBeUndefined()
    expect(table.find(ask('/b', { method: 'POST', host: 'x.com' }))).toBeUndefined()
    expect(table.find(ask('/a', { method: 'POST', host: 'y.com' }))).toBeUndefined()
    expect(table.find(ask('/a', { method: 'POST' }))).toBeUndefined()
    expect(table.isAmbiguous(ask('/b', { method: 'POST', host: 'x.com' }))).toBe(false)
    expect(table.find(ask('/a', { method: 'POST', host: 'x.com' }))).toBe('a')
  })

  it('depends on the host first: the name, the longest wildcard, any', () => {
    const table = tableOf({
      any: { path: '/orders/:id' },
      wide: { hosts: ['*.example.com'] },
      narrow: { hosts: ['*.eu.example.com'], path: '/orders/*' },
      exact: { hosts: ['API.example.com'], path: '/v2/*' },
    })
    const at = (host: string | undefined, path: string) => table.find(ask(path, host === undefined ? {} : { host }))
    expect(at('api.example.com', '/v2/x')).toBe('exact')
    expect(at('api.example.com', '/orders/1')).toBe('wide')
    expect(at('api.example.com.', '/v2/x')).toBe('exact')
    expect(at('a.b.example.com', '/orders/1')).toBe('wide')
    expect(at('a.eu.example.com', '/orders/1')).toBe('narrow')
    expect(at('a.eu.example.com', '/')).toBe('wide')
    expect(at('example.com', '/orders/1')).toBe('any')
    expect(at('badexample.com', '/orders/1')).toBe('any')
    expect(at(undefined, '/orders/1')).toBe('any')
    expect(at('other.com', '/')).toBeUndefined()
  })

  it('depends on methods, in any case, and GET stands for HEAD', () => {
    const table = tableOf({ read: { path: '/a', methods: ['get'] }, all: { path: '/a' } })
    const by = (method: string) => table.find(ask('/a', { method }))
    expect(['GET', 'HEAD', 'POST', 'PURGE'].map(by)).toEqual(['read', 'read', 'all', 'all'])
  })

  it('depends on headers: more of them first', () => {
    const table = tableOf({
      plain: { path: '/a' },
      any: { path: '/a', headers: [['x-version', '*']] },
      two: {
        path: '/a',
        headers: [
          ['x-version', '2'],
          ['x-beta', '*'],
        ],
      },
      other: { path: '/*', headers: [['x-beta', 'yes']] },
    })
    const by = (headers: Readonly<Record<string, string>>, path = '/a') => table.find(ask(path, { headers }))
    expect(by({})).toBe('plain')
    expect(by({ 'x-version': '1' })).toBe('any')
    expect(by({ 'x-version': '2', 'x-beta': '' })).toBe('two')
    expect(by({ 'x-beta': 'yes' }, '/b')).toBe('other')
    expect(by({ 'x-beta': 'no' }, '/b')).toBeUndefined()
  })
})

describe('an odd path', () => {
  const table = tableOf({ open: { path: '/files/*' }, admin: { path: '/admin/*' }, api: { path: '/api/:id' } })

  it.each([
    ['/FILES/x', 'open'],
    ['/%66iles/%78', 'open'],
    ['/files//x', 'open'],
    ['/files/a%2fb', 'open'],
    ['/files/a;v=1', 'open'],
    ['/files/./x', 'open'],
    ['/files/https://example.com', 'open'],
    ['/api/group%2Fproject', undefined],
    ['/api/1/', 'api'],
  ])('%s leads to %s when all servers read it so', (path, route) => {
    expect(table.find(ask(path))).toBe(route)
  })

  it.each([
    '/files/../admin/x',
    '/files/%2e%2e/admin/x',
    '/files/..%2fadmin/x',
    '/files/..%5cadmin/x',
    '/files/..;/admin/x',
    '//files/x',
    '/files;v=1/x',
    '/x/..;/files/y',
    '/files\\..\\admin',
  ])('%s is ambiguous: servers read it differently', (path) => {
    expect([table.find(ask(path)), table.isAmbiguous(ask(path))]).toEqual([undefined, true])
  })

  it('has a route where the readings protect alike', () => {
    const alike = tableOf({
      list: { path: '/orders', protection: 'same' },
      item: { path: '/orders/:id', protection: 'same' },
      rest: { path: '/*', protection: 'other' },
    })
    expect(alike.find(ask('/orders/'))).toBe('list')
    expect(alike.find(ask('//orders'))).toBeUndefined()
    expect(alike.isAmbiguous(ask('//orders'))).toBe(true)
    expect(alike.find(ask('//other'))).toBe('rest')
  })
})

/** Ways in which servers in use read the path of a target, as a list of segments. */
const SERVERS: readonly ((target: string) => readonly string[])[] = [
  (target) => pathIn(target).split('/').slice(1),
  (target) => new URL(target, 'http://host').pathname.split('/').slice(1),
  (target) => segmentsOf(decodedText(pathIn(target))),
  (target) => resolved(segmentsOf(decodedText(pathIn(target)))),
  (target) => resolved(segmentsOf(pathIn(target)).map((segment) => decodedText(segment.replace(/;.*/, '')))),
  (target) => resolved(segmentsOf(decodedText(pathIn(target)).replace(/;[^/]*/g, ''))),
  (target) => segmentsOf(decodedText(pathIn(target)).replaceAll('\\', '/')),
  (target) => pathIn(target).toLowerCase().split('/').slice(1).map(decodedText),
]

function pathIn(target: string): string {
  return target.split('?')[0]!
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function resolved(segments: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  return kept
}

/** Spellings of paths to three places, and of much else. */
const SPELLINGS = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('public', 'admin', 'api', 'x') },
      fc.constantFrom('PUBLIC', 'Admin', '%61dmin', 'publi%63', '%41PI', 'admin%3bx', '..', '.', '%2e%2e', '.%2E', ''),
      fc.constantFrom(
        '..;',
        '..;x',
        ';x',
        'admin;x',
        '..%2f',
        '%2f',
        '..%5c',
        '\\..\\',
        'a%2fadmin',
        '%00',
        '%',
        '%%361',
      ),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .chain((segments) => fc.constantFrom('', '/', '?q=/admin').map((end) => `/${segments.join('/')}${end}`))

describe('router, limits and servers', () => {
  const routes = { open: { path: '/public/*' }, admin: { path: '/admin/*' }, item: { path: '/api/:id' } }
  const table = tableOf(routes)
  const forward = targetRewriter({})

  it('property: no server takes a path that is forwarded for one that another route protects', () => {
    fc.assert(
      fc.property(SPELLINGS, (path) => {
        const route = table.find(ask(path))
        if (route === undefined) return
        const target = forward(path)
        const own = { open: 'public', admin: 'admin', item: 'api' }[route]
        for (const [index, read] of SERVERS.entries()) {
          const [first = ''] = read(target)
          expect([path, index, first.toLowerCase()]).toEqual([path, index, own])
        }
      }),
      { numRuns: 20_000 },
    )
  })

  it('property: the engine counts every request of a route under the rule of that route', () => {
    const limit = { limit: 1_000_000, window: '1h', dimension: 'global' } as const
    const rules = Object.entries(routes).map(
      ([name, { path }]): PolicyRule => ({ ...limit, name, resource: path, always: true }),
    )
    const engine = new PolicyEngine({ ruleSet: { rules }, store: memoryStore() })
    let routed = 0
    fc.assert(
      fc.property(SPELLINGS, (path) => {
        const route = table.find(ask(path))
        if (route === undefined) return
        routed++
        const decision = engine.check({ resource: path, method: 'GET' })
        expect([path, decision.limits.map(({ rule }) => rule)]).toEqual([path, [route]])
      }),
      { numRuns: 5000 },
    )
    expect(routed).toBeGreaterThan(200)
  })
})

describe('the target of an upstream', () => {
  it.each([
    [{}, '/a%2fb//c;x?q=%61', '/a%2fb//c;x?q=%61'],
    [{}, '/%61%2d%7E%5f%41/%7b?%61', '/a-~_A/%7b?%61'],
    [{ stripPrefix: '/api' }, '/API/orders?x=1', '/orders?x=1'],
    [{ stripPrefix: '/api' }, '/api', '/'],
    [{ stripPrefix: '/api' }, '/api?x=/a', '/?x=/a'],
    [{ stripPrefix: '/api/v1' }, '/api/v1/x/', '/x/'],
    [{ stripPrefix: '/api' }, '/api//evil.example/x', '/evil.example/x'],
    [{ addPrefix: '/v2' }, '/orders', '/v2/orders'],
    [{ stripPrefix: '/api', addPrefix: '/v2' }, '/api/orders', '/v2/orders'],
    [{ stripPrefix: '/api', addPrefix: '/v2' }, '/api', '/v2/'],
  ])('with %j, %s becomes %s', (rewrite, target, expected) => {
    expect(targetRewriter(rewrite)(target)).toBe(expected)
  })
})
