import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemRandom } from '@sluice/core'
import { Logger, LogOutput } from '@sluice/runtime'
import { freePort } from '@sluice/testing/servers'
import { expect, it, onTestFinished } from 'vitest'
import { testSettings } from '../service.fixture.ts'
import { DatabaseHost } from './config-database.ts'
import { dataFolder } from './data-folder.ts'
import { SigningSecret } from './signing-secret.ts'

it('an unreachable database is logged once per minute, however often it is tried', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-database-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const settings = testSettings({ dataDir, databaseUrl: `postgres://stranger@127.0.0.1:${await freePort()}/none` })
  const folder = dataFolder(dataDir)
  const messages: string[] = []
  const stream = {
    write: (text: string, written: () => void) => {
      messages.push(JSON.parse(text).message)
      written()
      return true
    },
    on: () => undefined,
    off: () => undefined,
  }
  let tries = 0
  const enough = Promise.withResolvers<void>()
  const host = new DatabaseHost({
    settings,
    folder,
    secret: new SigningSecret(undefined),
    nowMs: () => 0,
    secureRandom: systemRandom,
    log: new Logger(new LogOutput({ stream, nowMs: () => 0 })),
    follow: () => expect.fail('there is nothing to follow'),
    showKey: () => expect.fail('there is no key'),
    // Two seconds each: the first try and thirty more are a minute.
    sleep: (_, signal) => {
      if (++tries <= 30) return Promise.resolve()
      enough.resolve()
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    },
  })
  await host.start()
  await enough.promise
  await host.stop()
  expect(messages).toEqual(Array.from({ length: 2 }, () => 'could not use the configuration database; retrying'))
})
