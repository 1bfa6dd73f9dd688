import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Random, Timers } from '@sluice/core'
import { Breaker, durationMs } from '@sluice/core/internal'
import type { LogFields } from '@sluice/runtime'
import type { CompiledUpstream } from '../config/compiled-config.ts'
import { DEFAULTS, type InstanceConfig, LONGEST_PAUSE_MS, type UpstreamConfig } from '../config/gateway-config.ts'
import { AddressGuard } from './address-guard.ts'
import { createConcurrencyLimit } from './concurrency-limit.ts'
import { HealthChecker } from './health-checker.ts'
import { Instance } from './instance.ts'
import { type ConnectionOptions, InstanceConnection } from './instance-connection.ts'
import { NameResolver, type Resolve } from './name-resolver.ts'

/** What the instances of an upstream need of their process. */
export interface InstanceSetParts {
  /** Milliseconds of a clock that does not go back. */
  readonly nowMs: () => number
  readonly timers: Timers
  readonly random: Random
  readonly resolve: Resolve
  readonly log: UpstreamLog
}

/** The part of a logger that is used. */
export interface UpstreamLog {
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
}

/** How many times its first pause a pause may be. */
const PAUSE_GROWTH = 10

/** One configured URL and the instances that its addresses have become. */
interface Entry {
  readonly config: InstanceConfig
  readonly url: URL
  /** Undefined for an address. */
  resolver: NameResolver | undefined
  instances: readonly RunningInstance[]
  /** Why it has no instances; undefined if it has. */
  problem: string | undefined
}

interface RunningInstance {
  readonly instance: Instance
  readonly addresses: string
  readonly connection: InstanceConnection
  checker: HealthChecker | undefined
}

/**
 * Which instances an upstream has: one for each address of its configured URLs. Follows names, checks health.
 *
 * An instance whose name has one address is known by its URL, so that it keeps its keys under consistent hashing when
 * the address changes. With several addresses each is known by URL and address.
 */
export class InstanceSet {
  readonly #name: string
  readonly #config: CompiledUpstream
  readonly #parts: InstanceSetParts
  readonly #onChange: (instances: readonly Instance[]) => void
  readonly #connectionOptions: ConnectionOptions
  readonly #slowStartMs: number
  readonly #entries: readonly Entry[]
  #isStarted = false
  #isClosed = false

  /** `onChange` is called whenever instances come or go, and once at the end of the constructor. */
  constructor(
    { name, config }: { readonly name: string; readonly config: CompiledUpstream },
    parts: InstanceSetParts,
    onChange: (instances: readonly Instance[]) => void,
  ) {
    this.#name = name
    this.#config = config
    this.#parts = parts
    this.#onChange = onChange
    this.#connectionOptions = connectionOptionsOf(config)
    this.#slowStartMs = msOf(config.slowStart, 'slowStart', 0)
    this.#entries = config.instances.map((instance) => this.#createEntry(instance))
    this.#report()
  }

  /** URLs without instances, and why. */
  unresolved(): { readonly url: string; readonly problem: string }[] {
    return this.#entries.flatMap(({ config, problem }) => (problem === undefined ? [] : [{ url: config.url, problem }]))
  }

  /** Resolves when names are resolved and the first checks are done, or have failed. */
  async start(): Promise<void> {
    await Promise.all(this.#entries.map(({ resolver }) => resolver?.start()))
    this.#isStarted = true
    await Promise.all(this.#entries.flatMap(({ instances }) => instances.map((running) => this.#startChecks(running))))
  }

  /** Stops checks and queries; resolves when requests in flight are done. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { resolver } of this.#entries) resolver?.close()
    await Promise.all(this.#entries.flatMap(({ instances }) => instances.map(closeInstance)))
  }

  #createEntry(config: InstanceConfig): Entry {
    const url = new URL(config.url)
    const entry: Entry = { config, url, resolver: undefined, instances: [], problem: 'its name is not resolved yet' }
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(hostname) !== 0) this.#replaceInstances(entry, [[hostname]])
    else entry.resolver = this.#createResolver(entry, hostname)
    return entry
  }

  #createResolver(entry: Entry, hostname: string): NameResolver {
    const { resolve, timers, random, log } = this.#parts
    const fields = { upstream: this.#name, url: entry.config.url }
    return new NameResolver({
      hostname,
      everyMs: msOf(this.#config.resolveEvery, 'resolveEvery', DEFAULTS.resolveEveryMs),
      resolve,
      timers,
      random,
      onChange: (wanted) => {
        this.#replaceInstances(entry, wanted)
        log.info('addresses of an upstream changed', { ...fields, addresses: wanted.flat() })
        this.#report()
      },
      onFailure: (problem) => {
        log.warn('name of an upstream not resolved', { ...fields, problem })
        if (entry.instances.length === 0) entry.problem = problem
      },
    })
  }

  /** Makes the instances of an entry those with these addresses. What stays keeps its connections and its state. */
  #replaceInstances(entry: Entry, wanted: readonly (readonly string[])[]): void {
    const { guard } = this.#connectionOptions
    const { url } = entry.config
    const allowed = wanted.filter((addresses) => addresses.some((address) => guard.allows(address)))
    const before = entry.instances
    entry.instances = allowed.map((addresses) => {
      const id = allowed.length === 1 ? url : `${url} at ${addresses.join(', ')}`
      const key = addresses.join()
      return (
        before.find(({ instance, addresses: known }) => instance.id === id && known === key) ??
        this.#createInstance(entry, id, addresses)
      )
    })
    entry.problem = undefined
    if (wanted.length > allowed.length) {
      const denied = wanted.filter((addresses) => !allowed.includes(addresses)).flat()
      this.#parts.log.warn('address of an upstream denied', { upstream: this.#name, url, denied })
      if (allowed.length === 0) entry.problem = `${denied.join(', ')} is link-local or a metadata service`
    }
    for (const running of before) if (!entry.instances.includes(running)) void closeInstance(running)
  }

  #createInstance(entry: Entry, id: string, addresses: readonly string[]): RunningInstance {
    const { nowMs } = this.#parts
    const connection = new InstanceConnection(entry.url, addresses, this.#connectionOptions)
    const instance: Instance = new Instance({
      id,
      url: entry.config.url,
      weight: entry.config.weight ?? DEFAULTS.weight,
      connection,
      breaker: this.#createBreaker(id, () => instance.beginSlowStart()),
      limit: createConcurrencyLimit(this.#config.concurrency ?? {}, this.#parts),
      slowStartMs: this.#slowStartMs,
      isHealthy: this.#config.health?.active === undefined,
      addedMs: this.#isStarted ? nowMs() : undefined,
      hasOther: (one) => this.#hasOther(one),
      nowMs,
    })
    const running = { instance, addresses: addresses.join(), connection, checker: undefined }
    if (this.#isStarted) void this.#startChecks(running)
    return running
  }

  #createBreaker(id: string, onRecovery: () => void): Breaker {
    const { failures = DEFAULTS.passiveFailures, pause } = this.#config.health?.passive ?? {}
    const pauseMs = Math.ceil(msOf(pause, 'pause', DEFAULTS.passivePauseMs))
    const fields = { upstream: this.#name, instance: id }
    return new Breaker({
      failures,
      basePauseMs: pauseMs,
      maxPauseMs: Math.min(LONGEST_PAUSE_MS, pauseMs * PAUSE_GROWTH),
      random: this.#parts.random,
      onChange: (state) => {
        if (state === 'open') this.#parts.log.warn('instance of an upstream failed', fields)
        if (state !== 'closed') return
        onRecovery()
        this.#parts.log.info('instance of an upstream recovered', fields)
      },
    })
  }

  async #startChecks(running: RunningInstance): Promise<void> {
    const active = this.#config.health?.active
    if (active === undefined) return
    const { timers, random, log } = this.#parts
    const { instance, connection } = running
    running.checker = new HealthChecker({
      intervalMs: checkIntervalMs(this.#config),
      timeoutMs: msOf(active.timeout, 'timeout', DEFAULTS.healthTimeoutMs),
      healthyAfter: active.healthyAfter ?? DEFAULTS.healthyAfter,
      unhealthyAfter: active.unhealthyAfter ?? DEFAULTS.unhealthyAfter,
      timers,
      random,
      check: (signal) => connection.check(active.path, signal),
      onChange: (isHealthy, problem) => {
        instance.setHealth(isHealthy)
        const fields = { upstream: this.#name, instance: instance.id }
        if (isHealthy) log.info('instance of an upstream is healthy', fields)
        else log.warn('instance of an upstream is unhealthy', { ...fields, problem })
      },
    })
    await running.checker.start()
  }

  #hasOther(one: Instance): boolean {
    const nowMs = this.#parts.nowMs()
    return this.#all().some((instance) => instance !== one && instance.isUsable(nowMs))
  }

  #all(): Instance[] {
    return this.#entries.flatMap(({ instances }) => instances.map(({ instance }) => instance))
  }

  #report(): void {
    if (!this.#isClosed) this.#onChange(this.#all())
  }
}

/** How often health is checked. */
export function checkIntervalMs({ health }: UpstreamConfig): number {
  return msOf(health?.active?.interval, 'interval', DEFAULTS.healthIntervalMs)
}

async function closeInstance({ instance, connection, checker }: RunningInstance): Promise<void> {
  checker?.close()
  // An attempt may have been chosen and not sent yet.
  await instance.retire()
  await connection.close()
}

function connectionOptionsOf(config: CompiledUpstream): ConnectionOptions {
  const { ca, cert, key, serverName } = config.tls ?? {}
  const contentOf = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : readFileSync(file, 'utf8')
  return {
    protocol: config.protocol ?? 'http1',
    connections: config.connections ?? DEFAULTS.connections,
    connectTimeoutMs: config.connectMs ?? DEFAULTS.connectMs,
    guard: new AddressGuard(config.allowAddresses),
    tls: { ca: contentOf(ca), cert: contentOf(cert), key: contentOf(key), serverName },
  }
}

/** A duration; 0 is no duration of a rule, but a time that an upstream does not take. */
function msOf(duration: number | string | undefined, option: string, defaultMs: number): number {
  if (duration === undefined) return defaultMs
  return duration === 0 ? 0 : durationMs(duration, option)
}
