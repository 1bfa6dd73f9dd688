import { MessageChannel } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ThreadLinkParts } from './thread-link.ts'
import { ThreadLink } from './thread-link.ts'

type Answer = ThreadLinkParts['answer']

/** Waits that never end, unless the test ends them. */
class Waits {
  readonly ends: (() => void)[] = []
  open = 0

  readonly sleep: ThreadLinkParts['sleep'] = (_delayMs, signal) =>
    new Promise((resolve, reject) => {
      this.open++
      const over = (settle: () => void) => (): void => {
        this.open--
        settle()
      }
      signal?.addEventListener(
        'abort',
        over(() => reject(signal.reason)),
      )
      this.ends.push(over(resolve))
    })
}

function linked(answer: Answer): { asking: ThreadLink; answering: ThreadLink; waits: Waits } {
  const { port1, port2 } = new MessageChannel()
  onTestFinished(() => port1.close())
  const waits = new Waits()
  const asking = new ThreadLink({ port: port1, answer: () => expect.fail('nobody asks here'), sleep: waits.sleep })
  return { asking, answering: new ThreadLink({ port: port2, answer, sleep: waits.sleep }), waits }
}

describe('a link between threads', () => {
  it('carries questions and answers, in any order', async () => {
    const slow = Promise.withResolvers<string>()
    const { asking, waits } = linked((topic, question) => (topic === 'slow' ? slow.promise : { topic, question }))
    const first = asking.ask('slow', undefined, 1000)
    expect(await asking.ask('quick', { n: 1, list: [1, 2] }, 1000)).toEqual({
      topic: 'quick',
      question: { n: 1, list: [1, 2] },
    })
    slow.resolve('late')
    expect(await first).toBe('late')
    expect(waits.open).toBe(0)
  })

  it('carries failures, with their code', async () => {
    const { asking } = linked(() => {
      throw Object.assign(new Error('the port is taken'), { code: 'SLUICE_SERVICE_PORT_IN_USE' })
    })
    await expect(asking.ask('start', 1, 1000)).rejects.toMatchObject({
      message: 'the port is taken',
      code: 'SLUICE_SERVICE_PORT_IN_USE',
    })
    const { asking: other } = linked(() => Promise.reject('a text'))
    await expect(other.ask('start', 1, 1000)).rejects.toThrow('a text')
  })

  it('fails for an answer that cannot be sent, and for a question that cannot', async () => {
    const { asking, waits } = linked(() => () => 'a function')
    await expect(asking.ask('any', 1, 1000)).rejects.toThrow('could not be cloned')
    await expect(asking.ask('any', () => 1, 1000)).rejects.toThrow('could not be cloned')
    expect(waits.open).toBe(0)
  })

  it('does not wait longer than it was told to, and takes no answer after that', async () => {
    const late = Promise.withResolvers<string>()
    const { asking, waits } = linked(() => late.promise)
    const asked = asking.ask('any', 1, 1000)
    waits.ends[0]!()
    await expect(asked).rejects.toMatchObject({ code: 'THREAD_SILENT' })
    late.resolve('too late')
    const { asking: again } = linked(() => 'fine')
    expect(await again.ask('any', 1, 1000)).toBe('fine')
  })

  it('that is closed leaves nobody waiting', async () => {
    const { asking, waits } = linked(() => new Promise(() => undefined))
    const asked = asking.ask('any', 1, 1000)
    asking.close()
    await expect(asked).rejects.toMatchObject({ code: 'THREAD_ENDED' })
    await expect(asking.ask('any', 1, 1000)).rejects.toMatchObject({ code: 'THREAD_ENDED' })
    expect(waits.open).toBe(0)
  })
})
