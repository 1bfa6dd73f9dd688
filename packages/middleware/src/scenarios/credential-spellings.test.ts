import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createLimiter } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { compileIpv6 } from '../identity/address-tiers.ts'
import { byApiKey } from '../identity/by-api-key.ts'
import { clientAddress, compileTrust } from '../identity/client-address.ts'
import { type Identity, identityOf } from '../identity/identity.ts'

// A key is one caller, however the header is spelled; and a key that is not verified is no caller at all.

const SECRET = 'slk_live_3f9a'

/** As they may stand behind `Authorization:` on the wire. */
const SPELLINGS = [
  ` Bearer ${SECRET}`,
  `Bearer ${SECRET}`,
  ` bearer ${SECRET}`,
  ` BEARER ${SECRET}`,
  ` bEaReR ${SECRET}`,
  ` BearER ${SECRET}`,
  ` Bearer  ${SECRET}`,
  ` Bearer     ${SECRET}`,
  ` Bearer\t${SECRET}`,
  ` Bearer \t ${SECRET}`,
  ` Bearer\t\t${SECRET}`,
  `   Bearer ${SECRET}`,
  `\tBearer ${SECRET}`,
  ` Bearer ${SECRET} `,
  ` Bearer ${SECRET}\t`,
  ` \t bearer\t ${SECRET} \t `,
  ` Bearer "${SECRET}"`,
  ` bearer\t"${SECRET}"`,
  ` BEARER   "${SECRET}"  `,
  ` Bearer "slk\\_live_3f9a"`,
] as const

/** What is no verified key, each different from the others. */
const UNVERIFIED = [
  ...Array.from({ length: 20 }, (_, index) => ` Bearer slk_made_up_${index}`),
  ...Array.from({ length: 20 }, (_, index) => ` n${index} Bearer ${SECRET}`),
  ` Basic ${SECRET}`,
  ` ${SECRET}`,
  ` Bearer ${SECRET} ${SECRET}`,
  ` Bearer ${SECRET.toUpperCase()}`,
]

const trust = compileTrust(false)
const tiers = compileIpv6()
const source = byApiKey<IncomingMessage>({ verify: (key) => (key === SECRET ? 'owner-1' : undefined) })

function identify(message: IncomingMessage): Identity {
  const { headersDistinct, socket } = message
  const request: HttpRequest = {
    method: 'GET',
    url: '/',
    route: undefined,
    peerAddress: socket.remoteAddress,
    header: (name) => headersDistinct[name],
  }
  return identityOf(source(message, request), clientAddress(request, trust))
}

describe('the same credential in 20 spellings', () => {
  let server: Server
  const identities: Identity[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      identities.push(identify(request))
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })

  afterAll(async () => {
    server.close()
    await once(server, 'close')
  })

  /** Who the server takes the sender of these lines for; the lines go out byte by byte. */
  async function identityFor(...lines: readonly string[]): Promise<Identity> {
    identities.length = 0
    const { port } = server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    const headers = lines.map((line) => `Authorization:${line}\r\n`).join('')
    socket.end(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`)
    socket.resume()
    await once(socket, 'close')
    expect(identities).toHaveLength(1)
    return identities[0]!
  }

  it('has one counter', async () => {
    expect(new Set(SPELLINGS).size).toBe(20)
    const limiter = createLimiter({ limit: 5, window: '1h' })
    const keys = new Set<string>()
    let allowed = 0
    for (const spelling of SPELLINGS) {
      const key = tiers.keyOf(await identityFor(spelling))
      keys.add(key)
      if (limiter.tryAcquire(key)) allowed++
    }
    expect({ keys: keys.size, allowed }).toEqual({ keys: 1, allowed: 5 })
    expect([...keys][0]).toMatch(/^6:apiKey64:/)
    expect([...keys][0]).not.toContain('slk')
    expect([...keys][0]).not.toContain('owner')
  })

  it('does not choose a counter unless it is verified', async () => {
    for (const line of UNVERIFIED) {
      expect([line, await identityFor(line)]).toEqual([line, { kind: 'ip', value: '127.0.0.1' }])
    }
  })

  it('does not choose a counter when two keys were sent', async () => {
    const address = { kind: 'ip', value: '127.0.0.1' }
    expect(await identityFor(` Bearer ${SECRET}`, ' Bearer other')).toEqual(address)
    expect(await identityFor(' Bearer other', ` Bearer ${SECRET}`)).toEqual(address)
  })
})
