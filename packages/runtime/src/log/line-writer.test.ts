import { spawn } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LineWriter } from './line-writer.ts'

/** A real stream with a buffer of `highWaterMark` bytes that is blocked until `go()`. */
class HeldStream extends Writable {
  readonly received: string[] = []
  #go: ((error?: Error | null) => void) | undefined

  constructor(highWaterMark: number) {
    super({ highWaterMark, decodeStrings: false })
  }

  override _write(chunk: string, _encoding: string, done: (error?: Error | null) => void): void {
    this.received.push(chunk)
    this.#go = done
  }

  /** Ends the write that is in progress, and lets everything that follows from it happen. */
  async go(error?: Error): Promise<void> {
    const done = this.#go
    this.#go = undefined
    done?.(error)
    await new Promise(process.nextTick)
  }

  get text(): string {
    return this.received.join('')
  }
}

function writerTo(stream: HeldStream, mostWaiting = 100): LineWriter {
  return new LineWriter({ stream, mostWaiting, lostLine: (count) => `lost ${count}` })
}

describe('LineWriter', () => {
  it('writes lines at once while the stream takes them', () => {
    const stream = new HeldStream(1000)
    const writer = writerTo(stream)
    writer.write('one')
    expect(stream.text).toBe('one\n')
    expect(writer.counts).toEqual({ written: 1, dropped: 0 })
  })

  it('lets lines wait while the stream is blocked, drops those beyond the bound, and reports how many', async () => {
    const stream = new HeldStream(4)
    const writer = writerTo(stream, 10)
    for (const line of ['block', '12345', '67890', 'x', 'yy']) writer.write(line)
    expect(stream.text).toBe('block\n')
    expect(stream.writableLength).toBe(6)
    expect(writer.counts).toEqual({ written: 1, dropped: 2 })
    await stream.go()
    expect(stream.text).toBe('block\n12345\n67890\nlost 2\n')
    expect(writer.counts).toEqual({ written: 4, dropped: 2 })
    await stream.go()
    writer.write('on')
    expect(stream.text).toBe('block\n12345\n67890\nlost 2\non\n')
  })

  it('lets as many wait each time the stream is blocked', async () => {
    const stream = new HeldStream(4)
    const writer = writerTo(stream, 5)
    for (let n = 0; n < 3; n++) {
      writer.write('block')
      writer.write('12345')
      await stream.go()
      await stream.go()
    }
    expect(stream.text).toBe('block\n12345\n'.repeat(3))
    expect(writer.counts.dropped).toBe(0)
  })

  it('reports lost lines once, also when nothing else waits', async () => {
    const stream = new HeldStream(1)
    const writer = writerTo(stream, 0)
    for (const line of ['block', 'a', 'b']) writer.write(line)
    await stream.go()
    await stream.go()
    writer.write('c')
    await stream.go()
    expect(stream.text).toBe('block\nlost 2\nc\n')
  })

  it('never gives a blocked stream more than one write beyond its own bound', async () => {
    const stream = new HeldStream(100)
    const writer = writerTo(stream, 1000)
    for (let n = 0; n < 10_000; n++) {
      writer.write('0123456789')
      expect(stream.writableLength).toBeLessThan(100 + 11)
    }
    expect(writer.counts).toEqual({ written: 10, dropped: 10_000 - 10 - 100 })
    const closed = writer.close()
    while (stream.writableLength > 0) await stream.go()
    await closed
    expect(stream.text.match(/\n/g)).toHaveLength(111)
    expect(stream.text).toContain(`lost ${10_000 - 110}\n`)
  })

  it('waits at its close until everything is written, and takes nothing more', async () => {
    const stream = new HeldStream(1)
    const writer = writerTo(stream)
    for (const line of ['a', 'b', 'c']) writer.write(line)
    let isClosed = false
    const closed = writer.close().then(() => {
      isClosed = true
    })
    writer.write('late')
    await stream.go()
    expect(isClosed).toBe(false)
    expect(stream.text).toBe('a\nb\nc\nlost 1\n')
    await stream.go()
    await closed
    await writer.close()
    expect(writer.counts).toEqual({ written: 4, dropped: 1 })
    for (const event of ['drain', 'error', 'close']) expect(stream.listenerCount(event)).toBe(0)
    expect(stream.destroyed).toBe(false)
  })

  it('gives up at its close when the signal says so, and counts what was lost', async () => {
    const stream = new HeldStream(1)
    const writer = writerTo(stream)
    for (const line of ['a', 'b', 'c']) writer.write(line)
    const controller = new AbortController()
    const closed = writer.close(controller.signal)
    controller.abort()
    await closed
    expect(writer.counts).toEqual({ written: 1, dropped: 2 })
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
    await writer.close(AbortSignal.abort())
    // What is in progress may still fail, and that must not end the process.
    await stream.go(new Error('gone'))
    expect(stream.text).toBe('a\n')
  })

  it('drops and counts everything once the stream has failed', async () => {
    const stream = new HeldStream(1)
    const writer = writerTo(stream)
    for (const line of ['a', 'b']) writer.write(line)
    const closed = writer.close()
    await stream.go(new Error('gone'))
    await closed
    writer.write('c')
    expect(writer.counts).toEqual({ written: 1, dropped: 2 })
    expect(stream.text).toBe('a\n')
  })

  it.each([
    ['with an error', new Error('gone')],
    ['without an error', undefined],
  ])('does not wait for a stream that was destroyed %s', async (_name, error) => {
    const stream = new HeldStream(1)
    const writer = writerTo(stream)
    for (const line of ['a', 'b']) writer.write(line)
    stream.destroy(error)
    await writer.close()
    expect(writer.counts).toEqual({ written: 1, dropped: 1 })
  })

  it('takes every kind of stream that Node has', () => {
    for (const stream of [process.stdout, process.stderr, new PassThrough()]) {
      const writer = new LineWriter({ stream, mostWaiting: 1, lostLine: String })
      expect(writer.counts.written).toBe(0)
      void writer.close()
    }
  })

  it('never blocks a process whose standard output is not read', async () => {
    const program = `
      import { LineWriter } from ${JSON.stringify(fileURLToPath(new URL('line-writer.ts', import.meta.url)))}
      const lostLine = (count) => 'lost ' + count
      const writer = new LineWriter({ stream: process.stdout, mostWaiting: 100_000, lostLine })
      for (let n = 0; n < 100_000; n++) writer.write('x'.repeat(99))
      process.once('message', async () => {
        await writer.close()
        process.send(writer.counts, () => process.disconnect())
      })
      process.send(writer.counts)`
    const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
    const child = spawn(process.execPath, flags, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    onTestFinished(() => void child.kill())
    // It has written ten megabytes, and is still there to say so.
    const [before] = await once(child, 'message')
    expect(before.dropped).toBeGreaterThan(90_000)
    const output = text(child.stdout!)
    child.send('close')
    const [after] = await once(child, 'message')
    const lines = (await output).trimEnd().split('\n')
    expect(lines.filter((line) => line === 'x'.repeat(99))).toHaveLength(100_000 - before.dropped)
    expect(lines.filter((line) => line.startsWith('lost '))).toEqual([`lost ${before.dropped}`])
    expect(after).toEqual({ written: 100_000 - before.dropped + 1, dropped: before.dropped })
  })
})
