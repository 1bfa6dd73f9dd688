import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeError } from './runtime-error.ts'
import type { StartupPart } from './startup-graph.ts'
import { StartupGraph } from './startup-graph.ts'

interface Plan {
  readonly name: string
  readonly dependsOn?: readonly string[]
  readonly failStart?: unknown
  readonly failStop?: unknown
}

/** Parts that write down when they are called and, a few turns later, when they are done. */
function recorded(plans: readonly Plan[]): { parts: StartupPart[]; log: string[] } {
  const log: string[] = []
  const act = async (verb: string, name: string, failure: unknown): Promise<void> => {
    log.push(`${verb} ${name}`)
    for (let turn = 0; turn < 5; turn++) await undefined
    if (failure !== undefined) throw failure
    log.push(`${verb === 'start' ? 'started' : 'stopped'} ${name}`)
  }
  const parts = plans.map(({ name, dependsOn, failStart, failStop }) => ({
    name,
    dependsOn,
    start: () => act('start', name, failStart),
    stop: () => act('stop', name, failStop),
  }))
  return { parts, log }
}

const CHAIN = [{ name: 'db' }, { name: 'api', dependsOn: ['db'] }, { name: 'web', dependsOn: ['api'] }]
const DIAMOND = [
  { name: 'top', dependsOn: ['left', 'right'] },
  { name: 'left', dependsOn: ['base'] },
  { name: 'right', dependsOn: ['base'] },
  { name: 'base' },
]

async function failureOf(promise: Promise<unknown>): Promise<RuntimeError & AggregateError> {
  const [result] = await Promise.allSettled([promise])
  if (result.status === 'fulfilled') expect.fail('it was expected to fail')
  return result.reason
}

describe('StartupGraph', () => {
  it('starts level by level, the parts of a level together, and stops in reverse', async () => {
    const { parts, log } = recorded(DIAMOND)
    const graph = new StartupGraph(parts)
    expect(graph.levels).toEqual([['base'], ['left', 'right'], ['top']])
    expect(log).toEqual([])
    await graph.start()
    expect(log.splice(0)).toEqual([
      ...['start base', 'started base'],
      ...['start left', 'start right', 'started left', 'started right'],
      ...['start top', 'started top'],
    ])
    await graph.stop()
    expect(log).toEqual([
      ...['stop top', 'stopped top'],
      ...['stop right', 'stop left', 'stopped right', 'stopped left'],
      ...['stop base', 'stopped base'],
    ])
  })

  it('starts nothing before its dependencies and stops nothing before its dependents (property)', async () => {
    const anyPlans = fc.integer({ min: 1, max: 8 }).chain((count) =>
      fc
        .array(fc.array(fc.nat({ max: count }), { maxLength: 3 }), { minLength: count, maxLength: count })
        .map((all) =>
          all.map((wishes, index) => ({
            name: `p${index}`,
            dependsOn: wishes.filter((wish) => wish < index).map((wish) => `p${wish}`),
          })),
        )
        .chain((plans) => fc.shuffledSubarray(plans, { minLength: count })),
    )
    await fc.assert(
      fc.asyncProperty(anyPlans, async (plans) => {
        const { parts, log } = recorded(plans)
        const graph = new StartupGraph(parts)
        await graph.start()
        await graph.stop()
        expect(log).toHaveLength(plans.length * 4)
        for (const { name, dependsOn } of plans) {
          for (const dependency of dependsOn) {
            expect(log.indexOf(`started ${dependency}`)).toBeLessThan(log.indexOf(`start ${name}`))
            expect(log.indexOf(`stopped ${name}`)).toBeLessThan(log.indexOf(`stop ${dependency}`))
          }
        }
      }),
    )
  })

  it('takes parts that have nothing to start or stop, and a graph without parts', async () => {
    const graph = new StartupGraph([{ name: 'a' }, { name: 'b', dependsOn: ['a'], start: () => undefined }])
    await graph.start()
    await graph.stop()
    const empty = new StartupGraph([])
    await empty.start()
    await empty.stop()
    expect(empty.levels).toEqual([])
  })

  it('checks the whole graph before anything starts', () => {
    const { parts, log } = recorded([...CHAIN, { name: 'x', dependsOn: ['y'] }, { name: 'y', dependsOn: ['x'] }])
    expect(() => new StartupGraph(parts)).toThrow('x -> y -> x')
    expect(log).toEqual([])
  })

  it('rejects unknown fields of a part, except those of an instance of a class', () => {
    const part = { name: 'a', dependOn: ['b'] }
    expect(() => new StartupGraph([part])).toThrow('the option "dependOn"')
    class Server {
      readonly name = 'server'
      readonly port = 80
    }
    expect(new StartupGraph([new Server()]).levels).toEqual([['server']])
  })

  it('stops by await using', async () => {
    const { parts, log } = recorded([{ name: 'a' }])
    {
      await using graph = new StartupGraph(parts)
      await graph.start()
    }
    expect(log.at(-1)).toBe('stopped a')
  })
})

describe('a failed start', () => {
  it('stops what has started in reverse, names the part and keeps the cause', async () => {
    const cause = new Error('port in use')
    const { parts, log } = recorded([...CHAIN.slice(0, 2), { name: 'web', dependsOn: ['api'], failStart: cause }])
    const graph = new StartupGraph(parts)
    const error = await failureOf(graph.start())
    expect(error).toMatchObject({ code: 'SLUICE_RUNTIME_PART_START_FAILED', cause, alsoFailed: [] })
    expect(error.message).toContain('part "web" (port in use)')
    expect(log.slice(log.indexOf('start web'))).toEqual([
      'start web',
      ...['stop api', 'stopped api', 'stop db', 'stopped db'],
    ])
    log.length = 0
    await graph.stop()
    expect(log).toEqual([])
  })

  it('waits for the rest of the level, stops that too, and begins no further level', async () => {
    const plans = DIAMOND.map((plan) => (plan.name === 'left' ? { ...plan, failStart: new Error('no') } : plan))
    const { parts, log } = recorded(plans)
    await failureOf(new StartupGraph(parts).start())
    expect(log.slice(2)).toEqual([
      ...['start left', 'start right', 'started right'],
      ...['stop right', 'stopped right', 'stop base', 'stopped base'],
    ])
  })

  it('tells what else failed beside it and in stopping', async () => {
    const { parts } = recorded([
      { name: 'base', failStop: 'base stays' },
      { name: 'left', dependsOn: ['base'], failStart: new Error('left fails') },
      { name: 'right', dependsOn: ['base'], failStart: new Error('right fails') },
    ])
    const error = await failureOf(new StartupGraph(parts).start())
    expect(error.cause).toEqual(new Error('left fails'))
    expect(error.message).toContain('2 more failed')
    expect(error.alsoFailed.map(({ code, cause }) => [code, cause])).toEqual([
      ['SLUICE_RUNTIME_PART_START_FAILED', new Error('right fails')],
      ['SLUICE_RUNTIME_PART_STOP_FAILED', 'base stays'],
    ])
  })

  it('may be an exception thrown at once', async () => {
    const cause = new Error('at once')
    const start = (): void => {
      throw cause
    }
    expect(await failureOf(new StartupGraph([{ name: 'a', start }]).start())).toMatchObject({ cause })
  })
})

describe('stop', () => {
  it('goes on when a part fails and reports every failure', async () => {
    const { parts, log } = recorded([
      { name: 'db', failStop: new Error('db stays') },
      { name: 'api', dependsOn: ['db'] },
      { name: 'web', dependsOn: ['api'], failStop: new Error('web stays') },
    ])
    const graph = new StartupGraph(parts)
    await graph.start()
    log.length = 0
    const error = await failureOf(graph.stop())
    expect(log).toEqual(['stop web', 'stop api', 'stopped api', 'stop db'])
    expect(error).toBeInstanceOf(AggregateError)
    expect(error.code).toBe('SLUICE_RUNTIME_STOP_FAILED')
    expect(error.errors.map(({ code, cause }) => [code, cause])).toEqual([
      ['SLUICE_RUNTIME_PART_STOP_FAILED', new Error('web stays')],
      ['SLUICE_RUNTIME_PART_STOP_FAILED', new Error('db stays')],
    ])
    expect(error.message).toContain('part "web" (web stays)')
    expect(error.message).toContain('part "db" (db stays)')
    expect(await failureOf(graph.stop())).toBe(error)
    expect(log).toHaveLength(4)
  })

  it('stops once however often it is called', async () => {
    const { parts, log } = recorded([{ name: 'a' }])
    const graph = new StartupGraph(parts)
    await graph.start()
    await Promise.all([graph.stop(), graph.stop()])
    await graph.stop()
    expect(log).toEqual(['start a', 'started a', 'stop a', 'stopped a'])
  })

  it('during a start lets the level end, begins no other, and stops what has started', async () => {
    const { parts, log } = recorded(CHAIN)
    const graph = new StartupGraph(parts)
    const starting = failureOf(graph.start())
    expect(log).toEqual(['start db'])
    await graph.stop()
    expect(await starting).toMatchObject({ code: 'SLUICE_RUNTIME_GRAPH_INTERRUPTED' })
    expect(log).toEqual(['start db', 'started db', 'stop db', 'stopped db'])
  })

  it('during the last level still makes the start fail', async () => {
    const { parts, log } = recorded([{ name: 'a' }])
    const graph = new StartupGraph(parts)
    const starting = failureOf(graph.start())
    await graph.stop()
    expect(await starting).toMatchObject({ code: 'SLUICE_RUNTIME_GRAPH_INTERRUPTED' })
    expect(log.at(-1)).toBe('stopped a')
  })
})

describe('a second start', () => {
  it.each([
    ['starting', (graph: StartupGraph) => void graph.start()],
    ['started', (graph: StartupGraph) => graph.start()],
    ['stopped', (graph: StartupGraph) => graph.start().then(() => graph.stop())],
    ['stopped', (graph: StartupGraph) => graph.stop()],
  ])('is rejected on a graph that is %s', async (state, before) => {
    const { parts, log } = recorded([{ name: 'a' }])
    const graph = new StartupGraph(parts)
    await before(graph)
    const starts = log.filter((line) => line === 'start a').length
    const error = await failureOf(graph.start())
    expect(error.code).toBe('SLUICE_RUNTIME_GRAPH_ALREADY_STARTED')
    expect(error.received).toContain(`that is ${state}`)
    expect(log.filter((line) => line === 'start a')).toHaveLength(starts)
  })

  it('is rejected after a failed start', async () => {
    const { parts } = recorded([{ name: 'a', failStart: new Error('no') }])
    const graph = new StartupGraph(parts)
    await failureOf(graph.start())
    expect(await failureOf(graph.start())).toMatchObject({ code: 'SLUICE_RUNTIME_GRAPH_ALREADY_STARTED' })
  })
})
