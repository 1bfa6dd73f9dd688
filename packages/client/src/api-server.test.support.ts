import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as it arrived at the API. */
export interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly body: string
}

/** Answers the request of this number, which counts from 0. */
export type ApiAnswer = (response: ServerResponse, number: number, request: IncomingMessage) => void

/** An API on a free port of this machine, closed with the test. */
export class ApiServer {
  readonly asked: ApiRequest[] = []
  readonly url: string
  answer: ApiAnswer = (response) => void response.end('ok')

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`
  }

  static async start(answer?: ApiAnswer): Promise<ApiServer> {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const api = new ApiServer((server.address() as AddressInfo).port)
    if (answer !== undefined) api.answer = answer
    server.on('request', (request, response) => void api.#serve(request, response))
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    })
    return api
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const { method = '', url = '' } = request
    const number = this.asked.push({ method, path: url, body }) - 1
    this.answer(response, number, request)
  }
}

/** Answers the first `count` requests with this, and all others with `ok`. */
export function failing(times: number, status: number, headers: Record<string, string> = {}): ApiAnswer {
  return (response, number) => {
    if (number < times) response.writeHead(status, headers).end('later')
    else response.end('ok')
  }
}
