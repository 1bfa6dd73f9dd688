import type { GatewayRoute, GatewayUpstream } from '@sluice/contract'
import { expect, it } from 'vitest'
import { flowsOf } from './flows.ts'

function route(name: string, to: string): GatewayRoute {
  return { name, path: `/${name}`, upstream: to, auth: 'none', limited: true }
}

function upstream(name: string): GatewayUpstream {
  return { name, available: true, instances: [], unresolved: [] }
}

it('groups routes by upstream, in the order of the routes', () => {
  const routes = [route('b', 'two'), route('a', 'one'), route('c', 'two'), route('lost', 'gone')]
  const flows = flowsOf({ routes, upstreams: [upstream('one'), upstream('two'), upstream('idle')] })
  expect(flows.map(({ name, routes: own }) => [name, own.map((each) => each.name)])).toEqual([
    ['two', ['b', 'c']],
    ['one', ['a']],
    ['gone', ['lost']],
    ['idle', []],
  ])
  expect(flows[2]!.upstream).toBeUndefined()
})
