// Takes the place of `@hono/node-server` in bundles of tests: the server that the runtime has itself. Where a program
// cannot open one, as in a Worker, tests that need it are skipped.
import { skipTest } from './portable-vitest.ts'

interface ServeOptions {
  readonly fetch: (request: Request, server: unknown) => Response | Promise<Response>
  readonly port: number
  readonly hostname: string
}

interface NativeServer {
  close(done: () => void): void
}

interface BunServer {
  readonly port: number
  stop(closeConnections: boolean): Promise<void>
}

interface DenoServer {
  readonly addr: { readonly port: number }
  readonly finished: Promise<void>
}

interface Runtime {
  readonly Bun?: { serve(options: ServeOptions & { readonly idleTimeout: number }): BunServer }
  readonly Deno?: {
    serve(
      options: Omit<ServeOptions, 'fetch'> & { readonly signal: AbortSignal; readonly onListen: () => void },
      fetch: ServeOptions['fetch'],
    ): DenoServer
  }
}

const { Bun, Deno } = globalThis as Runtime

export function serve(options: ServeOptions, listening: (address: { readonly port: number }) => void): NativeServer {
  if (Bun !== undefined) return serveByBun(Bun, options, listening)
  if (Deno !== undefined) return serveByDeno(Deno, options, listening)
  return skipTest('a program cannot open a server here')
}

function serveByBun(
  bun: NonNullable<Runtime['Bun']>,
  options: ServeOptions,
  listening: (address: { readonly port: number }) => void,
): NativeServer {
  const server = bun.serve({ ...options, idleTimeout: 0 })
  queueMicrotask(() => listening(server))
  return { close: (done) => void server.stop(true).then(done) }
}

function serveByDeno(
  deno: NonNullable<Runtime['Deno']>,
  { fetch, ...options }: ServeOptions,
  listening: (address: { readonly port: number }) => void,
): NativeServer {
  const stopping = new AbortController()
  const server = deno.serve({ ...options, signal: stopping.signal, onListen: () => undefined }, fetch)
  queueMicrotask(() => listening(server.addr))
  return {
    close(done) {
      stopping.abort()
      void server.finished.then(done)
    },
  }
}
