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
    ['/Orders/', ['/orders/:id', '/orders', '/orders/*', '/*', '*']],
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

  it('rejects what is no pattern', () => {
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
    })

    it('a request without one may have any, and what is for one does not stand in for what is for another', () => {
      expect(methods.findByReading('/a', undefined)).toEqual([
        ['/a'],
        ['GET /a', '/a'],
        ['GET /a', 'HEAD /a', '/a'],
        ['PURGE /a', '/a'],
        ['post,Put /a', '/a'],
      ])
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

    it('are also distinguished, so that a high limit of one does not hide a low one of another', () => {
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

  describe('a slash at the end', () => {
    it('makes no difference where no pattern has a segment after it', () => {
      const rules = tableOf('*', '/*', '/orders', '/orders/:id/items', '/orders/17')
      expect(rules.findByReading('/orders/', 'GET')).toEqual([['/orders', '/*', '*']])
      expect(rules.findByReading('/orders/17/', 'GET')).toEqual([['/orders/17', '/*', '*']])
      expect(rules.find('/orders/', 'GET')).toBe(rules.find('/orders', 'GET'))
    })

    it.each([
      ['/orders/', ['/orders/:id']],
      ['/ORDERS/?x', ['/orders/:id']],
      ['/%6frders/', ['/orders/:id']],
      ['/x/../orders/', ['/orders/:id']],
      ['/orders/17/..', ['/orders/:id']],
      ['/orders/;x', ['/orders/:id']],
      ['http://host/orders/', ['/orders/:id']],
      ['/orders//', ['/orders/:id']],
      ['//items', ['/:any/items']],
      ['/a//b//c', ['/a/:x/b/:y/c']],
      ['/orders', []],
      ['/', []],
    ])('and an empty segment are something that a parameter stands for: %s', (resource, expected) => {
      expect(tableOf('/orders/:id', '/:any/items', '/a/:x/b/:y/c').find(resource, 'GET')).toEqual(expected)
    })

    it('leads to the rule after it and to the one before it, and none hides the other', () => {
      const rules = tableOf('*', '/orders', '/orders/:id', '/orders/*')
      expect(rules.findByReading('/orders/', 'GET')).toEqual([
        ['/orders', '/orders/*', '*'],
        ['/orders/*', '*'],
        ['/orders/:id', '/orders/*', '*'],
      ])
    })

    it('leads to a parameter only by a method that it is for', () => {
      const rules = tableOf('*', '/orders', 'POST /orders/:id')
      expect(rules.findByReading('/orders/', 'GET')).toEqual([['/orders', '*']])
      expect(rules.findByReading('/orders/', 'POST')).toEqual([
        ['/orders', '*'],
        ['POST /orders/:id', '*'],
      ])
    })

    it('belongs to a rule that is written with it', () => {
      const rules = tableOf('/', '/:page', '/orders/', '/orders/:id/', '/orders/:id/:part', '/orders/*', '/:any/:other')
      expect(rules.findByReading('/', 'GET')).toEqual([['/']])
      expect(rules.findByReading('/orders/', 'GET')).toEqual([['/orders/', '/orders/*', '/:page']])
      expect(rules.find('/orders/17/', 'GET')).toEqual(['/orders/:id/', '/orders/*', '/:any/:other'])
      expect(rules.findByReading('/x/', 'GET')).toEqual([['/:page'], ['/:any/:other']])
    })

    it('does not belong to a rule for another method, nor to a less specific one', () => {
      const rules = tableOf('POST /orders/', '/orders/:id', '/:any/')
      expect(rules.find('/orders/', 'POST')).toEqual(['POST /orders/', '/:any/'])
      expect(rules.find('/orders/', 'GET')).toEqual(['/orders/:id', '/:any/'])
    })

    it('does not keep what lifts limits from holding', () => {
      const rules = tableOf('/', '/health', '/health/:id', '/health/*', '/:page')
      expect(rules.findCertain('/health/', 'GET')).toEqual(['/health', '/health/*', '/:page'])
      expect(rules.findCertain('/', 'GET')).toEqual(['/'])
      expect(rules.findCertain('//health', 'GET')).toEqual([])
    })

    it('is looked at in bounded time, however many there are', () => {
      const rules = tableOf(...Array.from({ length: 12 }, (_, depth) => `/${':x/'.repeat(depth)}end`), '/:x/*', '/*')
      expect(rules.find('/'.repeat(1_000_000), 'GET')).toEqual(['/:x/*', '/*'])
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
      .tuple(
        fc.array(fc.oneof(segment, fc.constantFrom(':x', '*')), { maxLength: 4 }),
        fc.constantFrom('', '', '/', '/*'),
      )
      .map(
        ([segments, end]) =>
          segments.map((each) => `/${each}`).join('') + (segments.at(-1) === '*' ? '/*' : end) || '/',
      )
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
          const forMethod = entries.filter(({ methods }) => isFor(methods, by))
          const sure = readPath(asked).map((reading) => usualMatches(forMethod, reading))
          const each = (by === undefined ? ['GET', 'HEAD', 'POST', 'PATCH'] : [by]).flatMap((one) => {
            const forOne = entries.filter(({ methods }) => isFor(methods, one))
            return readPath(asked).flatMap((reading) => [
              usualMatches(forOne, reading),
              ...furtherMatches(forOne, reading),
            ])
          })
          const some = entries.filter((entry) => each.some((list) => list.includes(entry)))
          const found = indexed.find(asked, by)
          expect([...found].sort()).toEqual(some.map(({ value }) => value).sort())
          expect(found.map((value) => placeOf(entries[value]!))).toEqual(some.map(placeOf).sort())
          const lists = indexed.findByReading(asked, by).map((list) => String([...list].sort()))
          expect(new Set(lists)).toEqual(new Set(each.map((list) => String(list.map(({ value }) => value).sort()))))
          const all = some.filter((entry) => sure.every((list) => list.includes(entry)))
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

type Entries = readonly ResourceEntry<number>[]

/** What holds for a reading where a slash at its end makes no difference and no parameter is empty. */
function usualMatches(entries: Entries, reading: string): Entries {
  const named = reading.startsWith('/') ? entries : entries.filter(({ pattern }) => !pattern.startsWith('/'))
  return named.filter(({ pattern }) => expressionOf(pattern, '[^/]+').test(withoutLastSlash(reading)))
}

/** What holds for it where parameters may be empty, and where something asks for what stands after the slash. */
function furtherMatches(entries: Entries, reading: string): Entries[] {
  const lists: Entries[] = []
  if (!reading.startsWith('/')) return lists
  const without = withoutLastSlash(reading)
  if (reading.includes('//')) {
    lists.push(entries.filter(({ pattern }) => expressionOf(pattern, '[^/]*').test(without)))
  }
  if (!reading.endsWith('/')) return lists
  for (const parameter of ['[^/]+', '[^/]*']) {
    const owners = entries.filter(
      ({ pattern }) => pattern.endsWith('/') && expressionOf(pattern, parameter).test(without),
    )
    const owner = owners.map(({ pattern }) => shapeOf(pattern)).sort()[0] ?? 'z'
    const depth = without.split('/').length - 1
    const isFree = ({ pattern }: ResourceEntry<number>): boolean => shapeOf(pattern).slice(0, depth) < owner
    const endsBeforeSlash = ({ pattern }: ResourceEntry<number>): boolean =>
      expressionOf(pattern.replace(/\/\*$/, '').replaceAll('*', ':x') || '/', parameter).test(without)
    const matching = entries.filter(({ pattern }) => expressionOf(pattern, parameter).test(reading))
    // An entry takes the empty segment with a parameter, or with everything below that begins right there.
    const byParameter = matching.filter(({ pattern }) => pattern.startsWith('/') && shapeOf(pattern).length > depth)
    const byRest = matching.filter((entry) => entry.pattern.endsWith('/*') && endsBeforeSlash(entry))
    if (![...byParameter, ...byRest].some(isFree)) continue
    lists.push(matching.filter((entry) => !byParameter.includes(entry) || isFree(entry)))
  }
  return lists
}

function withoutLastSlash(reading: string): string {
  return reading.startsWith('/') ? reading.replace(/\/$/, '') : reading
}

/** An expression for readings without the slash at their end. */
function expressionOf(pattern: string, parameter: string): RegExp {
  if (pattern === '*') return /^/
  if (!pattern.startsWith('/')) return new RegExp(`^${pattern}$`)
  const hasRest = pattern.endsWith('/*')
  const fixed = (hasRest ? pattern.slice(0, -2) : pattern.replace(/\/$/, '')).replace(/:x|\*/g, parameter)
  return new RegExp(`^${fixed}${hasRest ? '(/|$)' : '$'}`)
}

/** A letter for each segment of a pattern, such that what is more specific sorts first. */
function shapeOf(pattern: string): string {
  const segments = pattern
    .replace(/\/\*?$/, '')
    .split('/')
    .slice(1)
  return segments.map((segment) => (segment === ':x' || segment === '*' ? 'b' : 'a')).join('')
}

function isFor(methods: readonly string[] | undefined, method: string | undefined): boolean {
  if (methods === undefined || method === undefined) return true
  return methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
}

/** What sorts an entry among others, written as a string. */
function placeOf({ pattern, methods }: ResourceEntry<number>): string {
  if (pattern === '*') return `9${methodsPlace(methods)}`
  const segments = pattern.split('/').filter((segment) => segment !== '')
  const hasRest = pattern.startsWith('/') && segments.at(-1) === '*'
  const fixed = hasRest ? segments.slice(0, -1) : segments
  const kinds = fixed.map((segment) => (segment === '*' || segment === ':x' ? '2' : '1')).join('')
  const texts = pattern.replace(/(?<=.)\/$/, '').replace(/:x|\*(?!$)/g, ':any')
  return `${kinds}${hasRest ? '4' : '3'} ${texts === '' ? '/' : texts} ${methodsPlace(methods)}`
}

function methodsPlace(methods: readonly string[] | undefined): string {
  return methods === undefined ? '9' : `${methods.length}${[...methods].sort().join()}`
}
