import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messagesOf } from './programs/child-program.ts'
import { serviceEvents } from './programs/serve.ts'

// The real service, as a process of its own with a data folder of its own.

/** A service that runs. */
export interface ServiceProcess {
  readonly url: string
  readonly port: number
  /** A key that may do everything. */
  readonly adminKey: string
  readonly dataDir: string
  /** Ends it and removes its files. */
  close(): Promise<void>
}

/** Starts a service on a free port; `flags` are those of its command line. */
export async function startServiceProcess(...flags: readonly string[]): Promise<ServiceProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-cli-'))
  const main = join(import.meta.dirname, '../../service/src/main.ts')
  const child = spawn(
    process.execPath,
    ['--conditions=source', main, '--port', '0', '--data-dir', dataDir, '--drain-ms', '0', ...flags],
    { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env: {} },
  )
  let log = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const exit = once(child, 'close')
  const close = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exit
    await rm(dataDir, { recursive: true, force: true })
  }
  const { value: started } = await serviceEvents(messagesOf(child)).next()
  if (started?.event !== 'started' || started.firstKey === null) {
    await close()
    throw new Error(`The service did not start with a first key: ${log}`)
  }
  const { url, firstKey } = started
  return { url, port: Number(new URL(url).port), adminKey: firstKey, dataDir, close }
}
