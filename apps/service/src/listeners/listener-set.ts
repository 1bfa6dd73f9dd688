import type { MetricRegistry } from '@sluice/runtime'
import type { CheckHealth } from '../operations/health.ts'
import type { Settings } from '../settings/settings.ts'
import type { Listener, ListenerPorts } from './listener.ts'
import { listenerHealth } from './listener.ts'

/** All listeners of one thread. */
export class ListenerSet {
  /** One for each listener. */
  readonly checks: readonly CheckHealth[]
  readonly #listeners: readonly Listener[]
  #stopWatching = (): void => undefined

  constructor(listeners: readonly Listener[], settings: Settings) {
    this.#listeners = listeners
    this.checks = listeners.map((listener) => () => listenerHealth(listener, settings))
  }

  /** The ports that they listen on; empty unless started. */
  get ports(): ListenerPorts {
    return Object.fromEntries(
      this.#listeners.flatMap(({ name, port }) => (port === undefined ? [] : [[name, port] as const])),
    )
  }

  /** Resolves when all listen. If one cannot, none does. */
  async start(metrics: MetricRegistry): Promise<void> {
    this.#stopWatching = watchListeners(metrics, this.#listeners)
    try {
      for (const listener of this.#listeners) await listener.start()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async drain(drainMs: number): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.drain(drainMs)))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.stop()))
    this.#stopWatching()
  }
}

function watchListeners(metrics: MetricRegistry, listeners: readonly Listener[]): () => void {
  const connections = metrics.gauge({
    name: 'sluice_listener_connections',
    help: 'Open connections, by listener.',
    labels: [{ name: 'listener', values: listeners.map(({ name }) => name) }],
    merge: 'sum',
  })
  return metrics.beforeSnapshot(() => {
    for (const { name, connections: open } of listeners) connections.labels({ listener: name }).set(open)
  })
}
