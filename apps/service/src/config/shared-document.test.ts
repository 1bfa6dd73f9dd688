import type { DocumentTable } from '@sluice/config-store'
import { describe, expect, it } from 'vitest'
import { TestTime } from '../alerts/alerts.test.support.ts'
import { sharedDocument } from './shared-document.ts'

class HeldTable implements DocumentTable {
  readonly calls: string[] = []
  readonly answers: PromiseWithResolvers<never>[] = []

  get(name: string): Promise<never> {
    return this.#hold(`get ${name}`)
  }

  put(name: string, body: string, revision: number): Promise<never> {
    return this.#hold(`put ${name} ${body} ${revision}`)
  }

  #hold(call: string): Promise<never> {
    this.calls.push(call)
    const answer = Promise.withResolvers<never>()
    this.answers.push(answer)
    return answer.promise
  }
}

function scene(): { table: HeldTable; time: TestTime; document: ReturnType<typeof sharedDocument> } {
  const [table, time] = [new HeldTable(), new TestTime()]
  return { table, time, document: sharedDocument(table, 'alerts', time.sleep) }
}

describe('a shared document', () => {
  it('is read and written by its name', async () => {
    const { table, time, document } = scene()
    const reading = document.read()
    table.answers[0]!.resolve({ revision: 3, body: 'x' } as never)
    expect(await reading).toEqual({ revision: 3, body: 'x' })
    const writing = document.write('y', 3)
    table.answers[1]!.resolve(false as never)
    expect(await writing).toBe(false)
    expect(table.calls).toEqual(['get alerts', 'put alerts y 3'])
    expect(time.pending).toBe(0)
  })

  it('passes on why it cannot be reached', async () => {
    const { table, time, document } = scene()
    const reading = document.read()
    table.answers[0]!.reject(new Error('gone'))
    await expect(reading).rejects.toThrow('gone')
    expect(time.pending).toBe(0)
  })

  it('gives up after three seconds, and asks nothing more before the answer has come', async () => {
    const { table, time, document } = scene()
    const reading = document.read()
    const timedOut = expect(reading).rejects.toThrow('no reply within 3000 ms')
    await time.advance(3000)
    await timedOut
    await expect(document.read()).rejects.toThrow('an earlier call is still pending')
    await expect(document.write('x', 1)).rejects.toThrow('an earlier call is still pending')
    expect(table.calls).toHaveLength(1)
    table.answers[0]!.reject(new Error('at last'))
    await time.advance(0)
    const again = document.read()
    table.answers[1]!.resolve(undefined as never)
    expect(await again).toBeUndefined()
  })
})
