import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RawConnection, rawCheck, startService } from './service.fixture.ts'

// The process as a user starts it.

const BODY = '{"userId":"user-123","resource":"/api/v1/data"}'

/** A child process and what it has printed so far. */
class Running {
  readonly child: ChildProcess
  readonly exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>
  output = ''
  #notify = (): void => undefined

  constructor(command: string, args: readonly string[], env?: Record<string, string>) {
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...(env && { env }) })
    this.exit = once(this.child, 'close') as typeof this.exit
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
        this.#notify()
      })
    }
    this.child.on('close', () => this.#notify())
    onTestFinished(async () => {
      this.child.kill('SIGKILL')
      await this.exit
    })
  }

  /** Waits until the output matches, and gives the match. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.output)
      if (found !== null) return found
      if (this.child.exitCode !== null) throw new Error(`It ended with ${this.child.exitCode}: ${this.output}`)
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    }
  }
}

function startMain(env: Record<string, string> = {}): Running {
  const main = `${import.meta.dirname}/main.ts`
  return new Running(process.execPath, ['--conditions=source', main], { PORT: '0', ...env })
}

const CURL_LINE = /^ {2}(curl .*)\n/m
const PORT_PRINTED = /http:\/\/127\.0\.0\.1:(\d+)\/livez/

async function portOf(service: Running): Promise<number> {
  return Number((await service.printed(PORT_PRINTED))[1])
}

/** What a user sees who pastes the line: the status line. Without curl on the machine, the same request is sent by hand. */
async function paste(line: string): Promise<string> {
  const shell = new Running('sh', ['-c', line])
  const [code] = await shell.exit
  if (code !== 127) return shell.output
  const [, url = '', type = '', body = ''] = /^curl -i (\S+) -H '([^']+)' -d '([^']+)'$/.exec(line) ?? []
  const response = await fetch(url, { method: 'POST', headers: [type.split(': ') as [string, string]], body })
  return `HTTP/1.1 ${response.status} ${await response.text()}`
}

describe('the process', () => {
  it('prints one command to try, which works', async () => {
    const service = startMain()
    const [, line = ''] = await service.printed(CURL_LINE)
    const output = await paste(line)
    expect(output).toContain('HTTP/1.1 200')
    expect(output).toContain('"allowed":true')
    expect(output).toContain('"remaining":99')
  })

  it('prints nothing but the message', async () => {
    const service = startMain()
    await service.printed(CURL_LINE)
    expect(service.output.split('\n').map((line) => line.trim().split(/\s{2,}| is | -i /)[0])).toEqual([
      'Sluice',
      'check API',
      'health',
      'rule',
      'reach',
      'Try it:',
      'curl',
      '',
    ])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s, idle connections or not', async (signal) => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    connection.send(rawCheck(BODY))
    await connection.until('"allowed":true')
    service.child.kill(signal)
    expect(await service.exit).toEqual([0, null])
    await connection.end()
  })

  it('answers what it has begun before it ends', async () => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    const bytes = rawCheck(BODY, 'Expect: 100-continue\r\n')
    connection.send(bytes.slice(0, -5))
    await connection.until('100 Continue')
    service.child.kill('SIGTERM')
    await service.printed(/Sluice is stopping/)
    connection.send(bytes.slice(-5))
    expect(await connection.end()).toContain('"allowed":true')
    expect(await service.exit).toEqual([0, null])
  })

  it('ends at once on a second signal', async () => {
    const service = startMain()
    const connection = new RawConnection(await portOf(service))
    connection.send(rawCheck(BODY, 'Expect: 100-continue\r\n').slice(0, -5))
    await connection.until('100 Continue')
    service.child.kill('SIGTERM')
    await service.printed(/Sluice is stopping/)
    service.child.kill('SIGINT')
    expect(await service.exit).toEqual([130, null])
    await connection.end()
  })
})

describe('a start that fails', () => {
  it('names the port that is taken, and another', async () => {
    const other = await startService()
    onTestFinished(() => other.service.stop())
    const service = startMain({ PORT: String(other.port) })
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain('SLUICE_SERVICE_PORT_IN_USE')
    expect(service.output).toContain(`port ${other.port} on 127.0.0.1`)
    expect(service.output).toContain(`PORT=${other.port + 1} npm start`)
    expect(service.output.trimEnd().split('\n')).toHaveLength(1)
  })

  it('names every setting that cannot be used', async () => {
    const service = startMain({ PORT: 'http', HOST: '*' })
    expect(await service.exit).toEqual([1, null])
    expect(service.output).toContain('SLUICE_SERVICE_INVALID_SETTING')
    expect(service.output).toContain('HOST="*" and PORT="http"')
    expect(service.output.trimEnd().split('\n')).toHaveLength(1)
  })
})
