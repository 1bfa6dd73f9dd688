import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Where a service sends its alerts. */
export interface WebhookReceiver {
  readonly url: string
  /** Types of the messages that it took. */
  readonly taken: readonly string[]
  /** From now on, messages are taken. Before, each was rejected for good. */
  take(): void
  close(): Promise<void>
}

/** Starts a receiver on a free port. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  let isTaking = false
  const taken: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      if (isTaking) taken.push((JSON.parse(body) as { type: string }).type)
      response.writeHead(isTaking ? 204 : 400).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    taken,
    take() {
      isTaking = true
    },
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
