import type { PolicyRule } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { RouteConfig } from './gateway-config.ts'
import { gatewayWarnings } from './gateway-warnings.ts'

const SHOP = { shop: { instances: [{ url: 'http://a' }] } }

function warned(routes: readonly Partial<RouteConfig>[], rules: readonly Partial<PolicyRule>[]): readonly string[] {
  const found = gatewayWarnings(
    {
      routes: routes.map((route, index) => ({ name: `route${index}`, match: {}, upstream: 'shop', ...route })),
      upstreams: SHOP,
    },
    {
      rules: rules.map(
        (rule, index) =>
          ({ name: `rule${index}`, resource: '*', dimension: 'ip', limit: 1, window: '1s', ...rule }) as PolicyRule,
      ),
    },
  )
  return found.map(({ code, subject }) => `${code} ${subject}`)
}

describe('a warning', () => {
  it.each([
    ['/orders/*', '/orders/:id'],
    ['/orders/:id', '/orders/17'],
    ['/orders/*', '/orders'],
    ['/:any/items', '/orders/*'],
    ['*', 'checkout'],
    ['/a/:b/c', '/:x/b/:y'],
    ['/Orders', '/orders/'],
  ])('is not given where %s and %s can be the same request', (path, resource) => {
    const routePath = path === '*' ? {} : { path }
    expect(warned([{ match: routePath }], [{ resource }])).toEqual([])
    expect(warned([{ match: { path: resource.startsWith('/') ? resource : '/*' } }], [{ resource: path }])).toEqual([])
  })

  it.each([
    ['/orders', '/order'],
    ['/orders/:id', '/orders'],
    ['/orders/:id/items', '/orders/*/lines'],
    ['/orders', 'checkout'],
    ['/orders', '/orders/:id/items'],
  ])('is given where %s and %s are never the same request', (path, resource) => {
    const both = ['route-unlimited route0', 'rule-unrouted rule0']
    expect(warned([{ match: { path } }], [{ resource }])).toEqual(both)
  })

  it('goes by the resource of a route, by methods and by what is switched off', () => {
    expect(warned([{ resource: 'checkout', match: { path: '/pay' } }], [{ resource: '/pay' }])).toEqual([
      'route-unlimited route0',
      'rule-unrouted rule0',
    ])
    expect(warned([{ resource: 'checkout' }], [{ resource: 'Checkout' }])).toEqual([])
    expect(warned([{ match: { methods: ['post'] } }], [{ methods: ['POST'] }])).toEqual([])
    expect(warned([{ match: { methods: ['get'] } }], [{ methods: ['POST'] }])).toHaveLength(2)
    expect(warned([{ limits: 'off' }], [{ enabled: false }])).toEqual([])
    expect(warned([{ limits: 'off' }], [{}])).toEqual(['rule-unrouted rule0'])
    expect(warned([{}], [{ enabled: false }])).toEqual(['route-unlimited route0'])
  })

  it('is given for a priority before an upstream that turns nobody away', () => {
    const routes = ['off', 'adaptive'].map((upstream) => ({ name: upstream, match: {}, upstream, priority: 0 }))
    const { instances } = SHOP.shop
    const upstreams = { off: { instances }, adaptive: { instances, concurrency: { mode: 'adaptive' } } } as const
    const rule: PolicyRule = { resource: '*', dimension: 'ip', limit: 1, window: '1s' }
    const found = gatewayWarnings({ routes, upstreams }, { rules: [rule] })
    expect(found.map(({ code, subject }) => `${code} ${subject}`)).toEqual(['priority-unused off'])
    expect(found[0]!.message).toContain('the upstream "off" turns nobody away')
  })

  it('says what to do', () => {
    const found = gatewayWarnings(
      {
        routes: [{ name: 'pay', match: {}, resource: 'checkout', upstream: 'shop' }],
        upstreams: { ...SHOP, mail: SHOP.shop },
      },
      { rules: [], tiers: [{ name: 't', rules: [{ resource: '/x', dimension: 'user', limit: 1, window: '1s' }] }] },
    )
    expect(found.map(({ message }) => message)).toEqual([
      'The route "pay" is not limited: no rule is for the resource "checkout", under which its requests count. Add a ' +
        'rule, or write "limits: off".',
      'The rule "/x@user" is for "/x", and no limited route leads there. Correct its resource, unless it is for ' +
        'checks that do not come through the gateway.',
      'The upstream "mail" gets no requests: no route names it. Add a route, or remove it.',
    ])
  })
})
