import type { CallReport } from '@sluice/contract'
import { systemTurnEnd } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import type { CallReportMessages } from '../../service-context.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import { CallReports } from './reports.ts'

const report = (resource: string): CallReport => ({ resource, method: 'GET', failed: true })

interface Scene {
  readonly calls: CallReports
  /** Resources whose calls this thread has counted. */
  readonly counted: string[]
  /** Resources that the others were told of, by telling. */
  readonly told: string[][]
  /** Ends the broadcast in flight. */
  end(error?: Error): Promise<void>
  /** Another thread tells something. */
  hear(thread: number, resources: readonly string[]): unknown
}

/** One thread of several, whose tellings last until the test ends them. */
function scene(count = 2): Scene {
  const counted: string[] = []
  const told: string[][] = []
  let handler: (...payload: never) => unknown = () => undefined
  let telling = Promise.withResolvers<void>()
  const threads: ThreadGroup<CallReportMessages> = {
    index: 0,
    count,
    handle: (_, given) => {
      handler = given
    },
    gather: async (_, ...[, reports]) => {
      told.push((reports as readonly CallReport[]).map(({ resource }) => resource))
      telling = Promise.withResolvers()
      await telling.promise
      return { replies: [], timedOut: 0 }
    },
    callMain: () => Promise.reject(new Error('not called')),
  }
  const engine = { report: ({ resource }: { resource: string }) => void counted.push(resource) }
  return {
    calls: new CallReports({ engine, threads }),
    counted,
    told,
    async end(error) {
      if (error === undefined) telling.resolve()
      else telling.reject(error)
      await new Promise<void>(systemTurnEnd)
    },
    hear: (thread, resources) => handler(...([thread, resources.map(report)] as never)),
  }
}

describe('reports of calls', () => {
  it('are counted here at once, and told to the others', () => {
    const { calls, counted, told } = scene()
    calls.count([report('/a'), report('/b')])
    expect([counted, told]).toEqual([['/a', '/b'], [['/a', '/b']]])
  })

  it('that arrive during a broadcast are sent together in the next one', async () => {
    const { calls, counted, told, end } = scene()
    for (const resource of ['/a', '/b', '/c']) calls.count([report(resource)])
    expect([counted, told]).toEqual([['/a', '/b', '/c'], [['/a']]])
    await end()
    expect(told).toEqual([['/a'], ['/b', '/c']])
    await end()
    calls.count([report('/d')])
    expect(told).toEqual([['/a'], ['/b', '/c'], ['/d']])
  })

  it('go on after others could not be told', async () => {
    const { calls, told, end } = scene()
    calls.count([report('/a')])
    calls.count([report('/b')])
    await end(new Error('no thread there'))
    expect(told).toEqual([['/a'], ['/b']])
  })

  it('that others tell are counted, and not told again; its own are counted once', () => {
    const { counted, told, hear } = scene()
    hear(1, ['/a'])
    hear(0, ['/b'])
    expect([counted, told]).toEqual([['/a'], []])
  })

  it('wait for the others up to a bound', async () => {
    const { calls, counted, told, end } = scene()
    for (let call = 0; call < 25; call++) calls.count(Array.from({ length: 1000 }, () => report('/a')))
    await end()
    expect([counted.length, told.map(({ length }) => length)]).toEqual([25_000, [1000, 10_000]])
  })

  it('are not broadcast in a single thread', () => {
    const { calls, counted, told } = scene(1)
    calls.count([report('/a')])
    expect([counted, told]).toEqual([['/a'], []])
  })
})
