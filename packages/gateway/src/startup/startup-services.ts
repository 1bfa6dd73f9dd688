import { isIP } from 'node:net'
import type { Random, Timers } from '@sluice/core'
import { retryDelayMs } from '@sluice/core/internal'
import { StartupGraph } from '@sluice/runtime'
import type { StartupServiceConfig } from '../config/gateway-config.ts'
import { AddressGuard } from '../upstreams/address-guard.ts'
import { InstanceConnection } from '../upstreams/instance-connection.ts'
import type { UpstreamLog } from '../upstreams/instance-set.ts'
import { type Resolve, resolveBySystem } from '../upstreams/name-resolver.ts'

/** Finds out whether a service is available: resolves, or rejects with the reason. */
export type ServiceProbe = (url: URL, signal: AbortSignal) => Promise<void>

export interface StartupServicesParts {
  readonly timers: Timers
  readonly random: Random
  readonly log: UpstreamLog
  readonly probe: ServiceProbe
}

/** A service that the gateway waits for. */
export interface AwaitedService {
  readonly name: string
  readonly url: string
  /** Why it is not available; undefined: it was not asked yet, such as while another one comes first. */
  readonly problem: string | undefined
}

const PROBE_TIMEOUT_MS = 2000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 5000

/**
 * Waits for the services that the configuration names, in the order of `dependsOn`: a service is probed when all that
 * it depends on have answered. There is no deadline: the gateway is not ready until they are all available.
 */
export class StartupServices {
  readonly #parts: StartupServicesParts
  readonly #graph: StartupGraph
  readonly #awaited = new Map<string, AwaitedService>()
  /** URLs by name of those that were available. */
  readonly #available = new Map<string, string>()
  readonly #end = new AbortController()

  /**
   * `previous`: of the configuration before. What it found available is not asked again.
   *
   * @throws RuntimeError `SLUICE_RUNTIME_GRAPH_CYCLE` with the path of a cycle, or another error of the graph for a
   * name that is not there
   */
  constructor(
    services: Readonly<Record<string, StartupServiceConfig>>,
    parts: StartupServicesParts,
    previous?: StartupServices,
  ) {
    this.#parts = parts
    const entries = Object.entries(services)
    for (const [name, { url }] of entries) {
      if (previous !== undefined && previous.#available.get(name) === url) this.#available.set(name, url)
      else this.#awaited.set(name, { name, url, problem: undefined })
    }
    this.#graph = new StartupGraph(
      entries.map(([name, { url, dependsOn }]) => ({
        name,
        dependsOn,
        start: () => this.#waitFor(name, new URL(url)),
      })),
    )
  }

  /** Services that are not available yet, in the order of the configuration. */
  awaited(): readonly AwaitedService[] {
    return [...this.#awaited.values()]
  }

  /** Resolves when all services are available. Rejects if {@link close} is called before. Call it once. */
  wait(): Promise<void> {
    return this.#graph.start()
  }

  /** Stops waiting. */
  async close(): Promise<void> {
    this.#end.abort(new Error('the gateway stops'))
    await this.#graph.stop()
  }

  async #waitFor(name: string, url: URL): Promise<void> {
    if (this.#available.has(name)) return
    const { log, random, timers } = this.#parts
    const { signal } = this.#end
    for (let failures = 0; ; failures++) {
      const problem = await this.#ask(url)
      signal.throwIfAborted()
      if (problem === undefined) break
      const known = this.#awaited.get(name)!
      if (known.problem !== problem) log.warn('waiting for a service', { service: name, url: known.url, problem })
      this.#awaited.set(name, { ...known, problem })
      const delayMs = retryDelayMs(failures, { firstMs: FIRST_RETRY_MS, longestMs: LONGEST_RETRY_MS, random })
      await pause(timers, delayMs, signal)
    }
    this.#available.set(name, this.#awaited.get(name)!.url)
    this.#awaited.delete(name)
    log.info('service is available', { service: name, url: url.href })
  }

  /** Why a service is not available; undefined: it is. */
  async #ask(url: URL): Promise<string | undefined> {
    const { probe, timers } = this.#parts
    const timeout = new AbortController()
    const cancel = timers.schedule(PROBE_TIMEOUT_MS, () =>
      timeout.abort(new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`)),
    )
    try {
      await probe(url, AbortSignal.any([timeout.signal, this.#end.signal]))
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      cancel()
    }
  }
}

/** Resolves after `delayMs`, or rejects when the signal aborts. */
function pause(timers: Timers, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel()
      reject(signal.reason)
    }
    const cancel = timers.schedule(delayMs, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/**
 * Asks over the network: a service with an HTTP URL is available if it answers with 2xx, one with `tcp://host:port` if
 * it accepts a connection. Addresses are checked as those of upstreams are.
 */
export function networkProbe(resolve: Resolve = resolveBySystem): ServiceProbe {
  const guard = new AddressGuard()
  return async (url, signal) => {
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = isIP(hostname) === 0 ? await resolve(hostname) : [hostname]
    const isTcp = url.protocol === 'tcp:'
    const connection = new InstanceConnection(new URL(isTcp ? `http://${url.host}` : url.origin), addresses, {
      protocol: 'http1',
      connections: 1,
      connectTimeoutMs: PROBE_TIMEOUT_MS,
      guard,
      tls: {},
    })
    try {
      if (isTcp) {
        ;(await connection.connect()).destroy()
        return
      }
      const status = await connection.check(`${url.pathname}${url.search}`, signal)
      if (status < 200 || status > 299) throw new Error(`status ${status}`)
    } finally {
      await connection.close()
    }
  }
}
