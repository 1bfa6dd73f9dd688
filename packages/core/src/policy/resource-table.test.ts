import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPath } from './path.ts'
import { explainPattern } from './resource-pattern.ts'
import type { ResourceEntry } from './resource-table.ts'
import { ResourceTable } from './resource-table.ts'

/** A table whose values are what it was made of: `GET,POST /orders/:id`, or only a pattern. */
function tableOf(...rules: readonly string[]): ResourceTable<string> {
  return new ResourceTable(rules.map(entryOf))
}

function entryOf(rule: string): ResourceEntry<string> {
  const space = rule.indexOf(' ')
  return space < 0
    ? { pattern: rule, methods: undefined, value: rule }
    : { pattern: rule.slice(space + 1), methods: rule.slice(0, space).split(','), value: rule }
}

describe('ResourceTable', () => {
  const table = tableOf(
    ...[
      '*',
      '/*',
      '/',
      '/orders',
      '/orders/:id',
      '/orders/open',
      '/orders/:id/items',
      '/orders/*',
      '/:any/open',
      'orders',
    ],
  )

  it.each([
    ['/', ['/', '/*', '*']],
    ['/orders', ['/orders', '/orders/*', '/*', '*']],
    ['/Orders/', ['/orders', '/orders/*', '/*', '*']],
    ['/orders/17?x', ['/orders/:id', '/orders/*', '/*', '*']],
    ['/orders/open', ['/orders/open', '/orders/:id', '/orders/*', '/:any/open', '/*', '*']],
    ['/orders/17/items', ['/orders/:id/items', '/orders/*', '/*', '*']],
    ['/orders/17/items/3', ['/orders/*', '/*', '*']],
    ['/users/open', ['/:any/open', '/*', '*']],
    ['/users', ['/*', '*']],
    ['http://host/orders', ['/orders', '/orders/*', '/*', '*']],
    ['orders', ['orders', '*']],
    ['Orders', ['orders', '*']],
    ['users', ['*']],
  ])('finds all that holds for %s, the most specific first', (resource, expected) => {
    expect(table.find(resource, 'GET')).toEqual(expected)
  })

  it('finds nothing where nothing holds', () => {
    expect(tableOf().find('/a', 'GET')).toEqual([])
    expect(tableOf('/a').find('/b', undefined)).toEqual([])
  })

  it('does not depend on the order of the entries', () => {
    const rules = ['*', '/a', 'GET /a', '/:x', '/a/*', 'GET,PUT /a', '/*']
    const expected = ['GET /a', 'GET,PUT /a', '/a', '/a/*', '/:x', '/*', '*']
    fc.assert(
      fc.property(fc.shuffledSubarray(rules, { minLength: rules.length }), (shuffled) => {
        expect(tableOf(...shuffled).find('/a', 'GET')).toEqual(expected)
      }),
    )
  })

  it('gives a value that two entries have once, in its first place', () => {
    const value = { name: 'one' }
    const twice = new ResourceTable([
      { pattern: '/a', methods: undefined, value },
      { pattern: '/*', methods: undefined, value },
    ])
    expect(twice.find('/a', 'GET')).toEqual([value])
  })

  it('refuses what is no pattern', () => {
    expect(() => tableOf('/a', '/b**')).toThrow(/SLUICE_INVALID_RULE_SET: .*"b\*\*".*received "\/b\*\*"/)
  })

  describe('methods', () => {
    const methods = tableOf('GET /a', 'post,Put /a', 'HEAD /a', 'PURGE /a', '/a')

    it.each([
      ['GET', ['GET /a', '/a']],
      ['get', ['GET /a', '/a']],
      ['POST', ['post,Put /a', '/a']],
      ['put', ['post,Put /a', '/a']],
      ['purge', ['PURGE /a', '/a']],
      ['DELETE', ['/a']],
    ])('%s finds entries for it and those for all', (method, expected) => {
      expect(methods.find('/a', method)).toEqual(expected)
      expect(methods.findCertain('/a', method)).toEqual(expected)
    })

    it('HEAD does not slip past what is for GET', () => {
      expect(methods.find('/a', 'HEAD')).toEqual(['GET /a', 'HEAD /a', '/a'])
      expect(tableOf('GET /a').find('/a', 'head')).toEqual(['GET /a'])
      expect(tableOf('HEAD /a').find('/a', 'GET')).toEqual([])
    })

    it.each([[undefined], ['']])('a request without one (%s) does not slip past what is for some', (method) => {
      expect(methods.find('/a', method)).toEqual(['GET /a', 'HEAD /a', 'PURGE /a', 'post,Put /a', '/a'])
      expect(methods.findByReading('/a', method)).toEqual([methods.find('/a', method)])
    })

    it('a request without one is not freed by what is for some', () => {
      expect(methods.findCertain('/a', undefined)).toEqual(['/a'])
    })

    it('an entry for no method holds for nothing', () => {
      const none = new ResourceTable([{ pattern: '*', methods: [], value: 'none' }])
      expect([none.find('/a', 'GET'), none.find('/a', undefined)]).toEqual([[], []])
    })
  })

  describe('several readings', () => {
    const spelled = tableOf('/orders/:id', '/orders/public', '/files/*', '/health', '*')

    it('are united, the most specific first', () => {
      expect(spelled.find('/files/..%2forders/public', 'GET')).toEqual([
        '/orders/public',
        '/orders/:id',
        '/files/*',
        '*',
      ])
    })

    it('are also told apart, so that a high limit of one does not hide a low one of another', () => {
      expect([...spelled.findByReading('/files/..%2forders/public', 'GET')].sort()).toEqual([
        ['/files/*', '*'],
        ['/orders/public', '/orders/:id', '*'],
      ])
    })

    it('are one where they come to the same', () => {
      expect(spelled.findByReading('/files/a%2fb', 'GET')).toEqual([['/files/*', '*']])
      expect(spelled.findByReading('/files/a', 'GET')).toEqual([['/files/*', '*']])
    })

    it.each([
      '/orders/1%2f..%2f..%2fhealth',
      '/x/../health',
      '/health;x',
      '//health',
      '/%68ealth',
      '/health#x',
      '/health/%2e',
    ])('do not all lead to /health: %s', (resource) => {
      expect(spelled.find(resource, 'GET')).toContain('/health')
      expect(spelled.findCertain(resource, 'GET')).toEqual(['*'])
    })

    it.each(['/health', '/Health/', '/health?x', 'http://host/health'])('all lead to /health: %s', (resource) => {
      expect(spelled.findCertain(resource, 'GET')).toEqual(['/health', '*'])
    })
  })

  describe('lists', () => {
    const rules = tableOf('/orders/:id', 'GET /orders/*', '*')

    it('are frozen', () => {
      for (const resource of ['/orders/1', '/orders/1;x', '/x']) {
        for (const method of ['GET', undefined]) {
          expect(Object.isFrozen(rules.find(resource, method))).toBe(true)
          expect(Object.isFrozen(rules.findCertain(resource, method))).toBe(true)
          expect(Object.isFrozen(rules.findByReading(resource, method))).toBe(true)
        }
      }
    })

    it('are the same for the same matches', () => {
      expect(rules.find('/orders/1', 'GET')).toBe(rules.find('/orders/2', 'GET'))
      expect(rules.find('/orders/1', 'GET')).toBe(rules.find('/orders//1;x', 'GET'))
      expect(rules.find('/orders/1', 'PUT')).toBe(rules.find('/orders/1', 'DELETE'))
      expect(rules.find('/orders/1', 'PUT')).not.toBe(rules.find('/orders/1', 'GET'))
      expect(rules.findByReading('/orders/1', 'GET')).toBe(rules.findByReading('/orders/2', 'GET'))
    })

    it('are the same for the same matches of several readings', () => {
      const [one, other] = ['/orders/1%2f2', '/Orders/3%2F4']
      expect(rules.findByReading(one!, 'GET').length).toBe(2)
      expect(rules.findByReading(one!, 'GET')).toBe(rules.findByReading(other!, 'GET'))
      expect(rules.findCertain(one!, 'GET')).toBe(rules.findCertain(other!, 'GET'))
      expect(rules.findCertain(one!, 'GET')).toEqual(['GET /orders/*', '*'])
      expect(rules.findCertain(one!, undefined)).toEqual(['*'])
    })

    it('stay right in a flood of resources, remembered or not', () => {
      for (let index = 0; index < 20_000; index++) {
        const method = index % 2 === 0 ? 'GET' : 'PUT'
        const resource = `/orders/${index}${'x'.repeat(index % 300)}`
        const expected = method === 'GET' ? ['/orders/:id', 'GET /orders/*', '*'] : ['/orders/:id', '*']
        expect(rules.find(resource, method)).toEqual(expected)
        expect(rules.find('/orders', 'PUT')).toEqual(['*'])
      }
    })
  })

  it('agrees with a plain search by regular expressions', () => {
    const segment = fc.constantFrom('a', 'b', 'c')
    const patterns = fc
      .tuple(fc.array(fc.oneof(segment, fc.constantFrom(':x', '*')), { maxLength: 4 }), fc.boolean())
      .map(([segments, isRest]) => `/${[...segments, ...(isRest || segments.at(-1) === '*' ? ['*'] : [])].join('/')}`)
    const rule = fc.record({
      pattern: fc.oneof({ weight: 8, arbitrary: patterns }, { weight: 1, arbitrary: fc.constantFrom('*', 'a', 'b') }),
      methods: fc.option(fc.subarray(['GET', 'HEAD', 'POST'], { minLength: 1 }), { nil: undefined }),
    })
    const resource = fc
      .array(fc.constantFrom('/', '/', '/', 'a', 'b', 'c', 'A', '%2f', '..', ';', '\\', '%61'), { maxLength: 8 })
      .map((parts) => parts.join(''))
    const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PATCH', undefined)
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), fc.array(fc.tuple(resource, method)), (rules, requests) => {
        const entries = rules.map(({ pattern, methods }, value) => ({ pattern, methods, value }))
        const indexed = new ResourceTable(entries)
        for (const [asked, by] of requests) {
          const holds = (entry: ResourceEntry<number>, reading: string): boolean =>
            expressionOf(entry.pattern).test(reading) && isFor(entry.methods, by)
          const each = readPath(asked).map((reading) => entries.filter((entry) => holds(entry, reading)))
          const some = entries.filter((entry) => each.some((list) => list.includes(entry)))
          const found = indexed.find(asked, by)
          expect([...found].sort()).toEqual(some.map(({ value }) => value).sort())
          expect(found.map((value) => placeOf(entries[value]!))).toEqual(some.map(placeOf).sort())
          const lists = indexed.findByReading(asked, by).map((list) => String([...list].sort()))
          expect(new Set(lists)).toEqual(new Set(each.map((list) => String(list.map(({ value }) => value).sort()))))
          const all = some.filter((entry) => each.every((list) => list.includes(entry)))
          const certain = all.filter(({ methods }) => by !== undefined || methods === undefined)
          expect([...indexed.findCertain(asked, by)].sort()).toEqual(certain.map(({ value }) => value).sort())
        }
      }),
      { numRuns: 500 },
    )
  })

  it('holds exactly where explainPattern finds no reason against it', () => {
    const rules = ['*', '/*', '/', '/a', '/a/:x', '/a/*', '/:x/b', '/:x/b/*', 'a']
    const path = fc
      .array(fc.constantFrom('/', '//', 'a', 'b', '%2f', '..'), { maxLength: 6 })
      .map((parts) => parts.join(''))
    const all = tableOf(...rules)
    fc.assert(
      fc.property(path, (resource) => {
        const explained = rules.filter((rule) =>
          readPath(resource).some((reading) => explainPattern(rule, reading) === undefined),
        )
        expect([...all.find(resource, undefined)].sort()).toEqual(explained.sort())
      }),
      { numRuns: 2000 },
    )
  })

  it('holds ten thousand entries as it holds ten', () => {
    const rules = Array.from(
      { length: 10_000 },
      (_, index) => `/service-${index % 100}/v${Math.floor(index / 100)}/:id`,
    )
    const large = tableOf('*', ...rules)
    for (const rule of rules) expect(large.find(rule.replace(':id', '17'), 'GET')).toEqual([rule, '*'])
  })

  it('finds the same when there are too many lists to keep them all', () => {
    const rules = Array.from({ length: 70_000 }, (_, index) => `/${index}`)
    const large = tableOf(...rules)
    const wrong = [...rules, ...rules].filter((rule) => String(large.find(rule, 'GET')) !== rule)
    expect(wrong).toEqual([])
  })
})

function expressionOf(pattern: string): RegExp {
  if (pattern === '*') return /^/
  if (!pattern.startsWith('/')) return new RegExp(`^${pattern}$`)
  const hasRest = pattern.endsWith('/*')
  const fixed = (hasRest ? pattern.slice(0, -2) : pattern).replace(/:x|\*/g, '[^/]+')
  if (fixed === '' || fixed === '/') return hasRest ? /^\// : /^\/$/
  return new RegExp(`^${fixed}${hasRest ? '(/|$)' : '$'}`)
}

function isFor(methods: readonly string[] | undefined, method: string | undefined): boolean {
  if (methods === undefined || method === undefined) return true
  return methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
}

/** What sorts an entry among others, written as a text. */
function placeOf({ pattern, methods }: ResourceEntry<number>): string {
  if (pattern === '*') return `9${methodsPlace(methods)}`
  const segments = pattern.split('/').filter((segment) => segment !== '')
  const hasRest = pattern.startsWith('/') && segments.at(-1) === '*'
  const fixed = hasRest ? segments.slice(0, -1) : segments
  const kinds = fixed.map((segment) => (segment === '*' || segment === ':x' ? '2' : '1')).join('')
  const texts = pattern.replace(/:x|\*(?!$)/g, ':any')
  return `${kinds}${hasRest ? '4' : '3'} ${texts === '' ? '/' : texts} ${methodsPlace(methods)}`
}

function methodsPlace(methods: readonly string[] | undefined): string {
  return methods === undefined ? '9' : `${methods.length}${[...methods].sort().join()}`
}
