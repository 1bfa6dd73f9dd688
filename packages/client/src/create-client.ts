import { checkCall, checkedOperation, checkPaged, checkStream, checkWait, type RequestCall } from './call-check.ts'
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
    check: checked('check', client.check),
    batch: checked('batch', client.batch),
    peek: checked('peek', client.peek),
    reserve: checked('reserve', client.reserve),
    settle: checked('settle', client.settle),
    release: checked('release', client.release),
    acquire: async (request, options) => {
      checkCall('acquire', request, options)
      checkWait(request.maxWaitMs)
      return await client.acquire(request, options)
    },
    heartbeat: checked('heartbeat', client.heartbeat),
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

/** One of its calls that takes a request and options. */
function checked<Asked, Options, Answer>(
  name: RequestCall,
  call: (asked: Asked, options?: Options) => Promise<Answer>,
): (asked: Asked, options?: Options) => Promise<Answer> {
  return async (asked, options) => {
    checkCall(name, asked, options)
    return await call(asked, options)
  }
}
