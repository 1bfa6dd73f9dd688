import { constants } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '@sluice/core'
import { Logger, LogOutput, systemNowMs, systemSleep } from '@sluice/runtime'
import { configDatabase } from '../config/config-database.ts'
import { dataFolder } from '../config/data-folder.ts'
import { IdSource, MachineNumberTable } from '../ids/machine-numbers.ts'
import type { ServiceNode } from '../node.ts'
import { createNode } from '../node.ts'
import type { HealthCheck } from '../operations/health.ts'
import { systemOfProcess } from '../system.ts'
import { THREADS_TOPIC, ThreadMember } from '../threads/message-bus.ts'
import { ThreadLink } from '../threads/thread-link.ts'
import { THREAD_DRAIN, THREAD_ENTER, THREAD_START, THREAD_STOP } from './supervisor.ts'
import type { WorkerData } from './workers.ts'

// A thread that answers requests. It does nothing before its supervisor tells it to.

const { settings, index, shared, failures, secret, machineNumbers } = workerData as WorkerData
const nowMs = (): number => systemClock.nowMicros() / 1000
const output = new LogOutput({ stream: process.stderr, nowMs: systemNowMs, level: settings.logLevel })
const member = new ThreadMember({ index, count: settings.threads, link: () => link })
// Each thread writes a copy of the configuration for itself: in one file they would get in each other's way.
const common = dataFolder(settings.dataDir)
const folder = index === 0 ? common : { ...common, rulesCache: `${common.rulesCache}-${index}` }
const database = configDatabase(settings, folder, nowMs)
let service: ServiceNode | undefined

/** How long the supervisor may take to take note of this thread, on a machine that is busy with starting others. */
const ENTER_MS = 10_000

const link: ThreadLink = new ThreadLink({ port: parentPort!, sleep: systemSleep, answer })

function answer(topic: string, question: unknown): Promise<unknown> {
  switch (topic) {
    case THREAD_START:
      return start(question as number)
    case THREAD_DRAIN:
      return drain(question as number)
    case THREAD_STOP:
      return stop()
    default:
      return member.serve(topic, question)
  }
}

async function start(port: number): Promise<number | undefined> {
  // A thread that there was not before begins with what the first knows.
  await copyFile(common.rulesCache, folder.rulesCache, constants.COPYFILE_EXCL).catch(() => undefined)
  await link.ask(THREAD_ENTER, undefined, ENTER_MS)
  const ids = new IdSource(new MachineNumberTable(settings.threads, machineNumbers), index, nowMs)
  service = createNode({
    settings,
    system: { ...systemOfProcess(output), log: new Logger(output, { thread: index }) },
    folder,
    threads: member,
    database,
    shared,
    failures,
    secret: new Uint8Array(secret),
    nextId: () => ids.next(),
    port,
    checks: [() => member.askMain<HealthCheck>(THREADS_TOPIC)],
  })
  await service.start()
  return service.port
}

async function drain(drainMs: number): Promise<void> {
  await service?.drain(drainMs)
}

async function stop(): Promise<void> {
  await service?.stop()
  await database.close()
  await output.close()
}
