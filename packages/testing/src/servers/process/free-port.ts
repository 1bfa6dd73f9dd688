import type { Server } from 'node:net'
import { createServer } from 'node:net'
import type { Random } from '@sluice/core'
import { systemRandom } from '@sluice/core'
import { ServerError } from './server-error.ts'

/** The one address that the servers of tests listen on. */
export const LOOPBACK = '127.0.0.1'

// Systems take the local ports of outgoing connections from 32 768 on (Linux) or above. A port below stays free while
// its server is down, so that the server finds it again.
const FIRST_PORT = 10_000
const LAST_PORT = 32_000

const MOST_TRIES = 100
const MOST_STARTS = 5

/**
 * A port of 127.0.0.1 that nothing listens on, from 10 000 to 32 000. Nothing keeps it free: another process may take
 * it before you do, which {@link onFreePorts} allows for.
 */
export async function freePort(random: Random = systemRandom): Promise<number> {
  const [port] = await freePorts(1, random)
  return port!
}

/**
 * Starts something on `count` different free ports, and again on others, up to five times, when it finds one of them
 * taken: when it rejects with `SLUICE_TESTING_PORT_TAKEN`. Any other rejection is passed on.
 */
export async function onFreePorts<T>(
  count: number,
  start: (ports: readonly number[]) => Promise<T>,
  random: Random = systemRandom,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(await freePorts(count, random))
    } catch (error) {
      const isTaken = error instanceof ServerError && error.code === 'SLUICE_TESTING_PORT_TAKEN'
      if (!isTaken || tries === MOST_STARTS) throw error
    }
  }
}

/** All are held at the same time, so no two are the same. */
async function freePorts(count: number, random: Random): Promise<readonly number[]> {
  const held: Held[] = []
  try {
    while (held.length < count) held.push(await holdAnyPort(random))
    return held.map(({ port }) => port)
  } finally {
    await Promise.all(held.map(({ server }) => new Promise((resolve) => server.close(resolve))))
  }
}

interface Held {
  readonly port: number
  readonly server: Server
}

async function holdAnyPort(random: Random): Promise<Held> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const port = FIRST_PORT + (random.nextUint32() % (LAST_PORT - FIRST_PORT + 1))
    const server = await holdPort(port)
    if (server !== undefined) return { port, server }
  }
  throw new ServerError(
    'SLUICE_TESTING_PORT_TAKEN',
    `${MOST_TRIES} ports of ${LOOPBACK} between ${FIRST_PORT} and ${LAST_PORT} were tried and all are taken. End ` +
      'the processes that hold them.',
  )
}

function holdPort(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined)
      else reject(error)
    })
    server.listen(port, LOOPBACK, () => resolve(server))
  })
}
