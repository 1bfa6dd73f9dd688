import { constants } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '@sluice/core'
import { Logger, LogOutput, systemNowMs, systemSleep } from '@sluice/runtime'
import { systemOfProcess } from '../clock-and-random.ts'
import { configDatabase } from '../config/config-database.ts'
import { dataFolder } from '../config/data-folder.ts'
import { IdSource, MachineNumberTable } from '../ids/machine-numbers.ts'
import type { ListenerPorts } from '../listeners/listener.ts'
import type { ServiceMessages } from '../service-context.ts'
import type { ServiceThread } from '../service-thread.ts'
import { createServiceThread } from '../service-thread.ts'
import { ThreadLink, ThreadMember } from '../thread-messages/message-bus.ts'
import type { ToSupervisor, ToWorker, WorkerData } from './workers.ts'

// A thread that serves requests. It does nothing before its supervisor sends `thread.start`.

const { settings, index, shared, failures, secret, machineNumbers } = workerData as WorkerData
const nowMs = (): number => systemClock.nowMicros() / 1000
const output = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: settings.logLevel })
const link = new ThreadLink<ToSupervisor, ServiceMessages & ToWorker>(parentPort!, systemSleep)
const threads = new ThreadMember<ServiceMessages>(index, settings.threads, link)
// Each thread writes its own copy of the configuration, so that they do not overwrite each other's file.
const common = dataFolder(settings.dataDir)
const folder = index === 0 ? common : { ...common, rulesCache: `${common.rulesCache}-${index}` }
const database = configDatabase(settings, folder, nowMs)
let service: ServiceThread | undefined

/** Long, because the machine may be busy starting other threads. */
const ENTER_TIMEOUT_MS = 10_000

link.handle('thread.start', start)
link.handle('thread.drain', (drainMs) => service?.drain(drainMs))
link.handle('thread.stop', stop)

async function start(ports: ListenerPorts): Promise<ListenerPorts> {
  // A thread without a copy of its own begins with that of the first thread.
  await copyFile(common.rulesCache, folder.rulesCache, constants.COPYFILE_EXCL).catch(() => undefined)
  await link.call(ENTER_TIMEOUT_MS, 'thread.enter')
  const ids = new IdSource(new MachineNumberTable(settings.threads, machineNumbers), index, nowMs)
  service = createServiceThread({
    settings,
    system: { ...systemOfProcess(output), log: new Logger(output, { thread: index }) },
    folder,
    threads,
    database,
    shared,
    failures,
    secret: new Uint8Array(secret),
    nextId: ids.next,
    ports,
    checks: [() => threads.callMain('threads.health')],
  })
  await service.start()
  return service.ports
}

async function stop(): Promise<void> {
  await service?.stop()
  await database.close()
  await output.close()
}
