import { checkCall, checkedOperation, checkPaged, checkStream, checkWait } from './call-check.ts'
import { type Client, trustingClient } from './client.ts'
import { type ClientOptions, resolveOptions } from './client-options.ts'

/** A client for the service at `url`. Nothing is sent before it is asked. Throws when an option cannot be used. */
export function createClient(options: ClientOptions): Client {
  return checkedClient(trustingClient(resolveOptions(options)))
}

/**
 * A client that looks at what its calls are given before it makes them: what cannot be used is refused with
 * `SLUICE_CLIENT_INVALID_OPTION`, and nothing is sent.
 */
function checkedClient(client: Client): Client {
  return {
    check: async (request, options) => {
      checkCall('check', request, options)
      return await client.check(request, options)
    },
    batch: async (requests, options) => {
      checkCall('batch', requests, options)
      return await client.batch(requests, options)
    },
    peek: async (request, options) => {
      checkCall('peek', request, options)
      return await client.peek(request, options)
    },
    reserve: async (request, options) => {
      checkCall('reserve', request, options)
      return await client.reserve(request, options)
    },
    settle: async (request, options) => {
      checkCall('settle', request, options)
      return await client.settle(request, options)
    },
    release: async (request, options) => {
      checkCall('release', request, options)
      return await client.release(request, options)
    },
    acquire: async (request, options) => {
      checkCall('acquire', request, options)
      checkWait(request.maxWaitMs)
      return await client.acquire(request, options)
    },
    heartbeat: async (request, options) => {
      checkCall('heartbeat', request, options)
      return await client.heartbeat(request, options)
    },
    report: async (ended, options) => {
      checkCall('report', ended, options)
      await client.report(ended, options)
    },
    call: async (id, ...input) => {
      checkedOperation(id, input[0])
      return await client.call(id, ...input)
    },
    pages: (id, ...input) => {
      checkPaged(id, input[0])
      return client.pages(id, ...input)
    },
    items: (id, ...input) => {
      checkPaged(id, input[0])
      return client.items(id, ...input)
    },
    stream: (id, ...input) => {
      checkStream(id, input[0])
      return client.stream(id, ...input)
    },
  }
}
