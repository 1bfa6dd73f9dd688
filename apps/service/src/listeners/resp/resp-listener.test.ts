import { connect } from 'node:net'
import { freePort } from '@sluice/testing/servers'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode, RunningService } from '../../service.fixture.ts'
import { RawConnection, startRealService, startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

async function start(settings: Partial<Settings> = {}): Promise<RunningService> {
  const node = await startService({ resp: { port: 0, tls: undefined }, ...settings })
  onTestFinished(() => node.stop())
  return node
}

/** Sends these bytes on a connection of their own, and QUIT; resolves with everything that came back. */
async function ask(node: RunningNode, ...lines: readonly string[]): Promise<string> {
  const connection = new RawConnection(node.respPort)
  connection.send(`${lines.join('\r\n')}\r\nQUIT\r\n`)
  return await connection.end()
}

describe('connection commands', () => {
  it.each([
    ['PING', '+PONG\r\n'],
    ['ping hello', '$5\r\nhello\r\n'],
    ['ECHO "a b"', '$3\r\na b\r\n'],
    ['SELECT 0', '+OK\r\n'],
    ['SELECT 1', '-ERR DB index is out of range\r\n'],
    ['CLIENT SETNAME x\r\nCLIENT GETNAME', '+OK\r\n$1\r\nx\r\n'],
    ['CLIENT GETNAME', '$-1\r\n'],
    ['CLIENT SETINFO lib-name test', '+OK\r\n'],
    ['HELLO 4', '-NOPROTO unsupported protocol version\r\n'],
    ['HELLO 3 NAME x', "-ERR Syntax error in HELLO option 'NAME'\r\n"],
    ['COMMAND COUNT', ':14\r\n'],
    ['COMMAND DOCS', '*0\r\n'],
    ['COMMAND INFO cl.throttle', '*1\r\n*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n'],
    ['COMMAND INFO nope', '*1\r\n$-1\r\n'],
    ['RESET', '+RESET\r\n'],
    ['GET a', "-ERR unknown command 'GET'\r\n"],
    ['ECHO', "-ERR wrong number of arguments for 'echo' command\r\n"],
    ['CLIENT KILL', expect.stringContaining("-ERR unknown subcommand or wrong number of arguments for 'KILL'")],
    ['INFO', expect.stringContaining('loading:0\r\n')],
  ])('%s', async (sent, replied) => {
    const reply = await ask(await start(), sent)
    expect(reply.endsWith('+OK\r\n')).toBe(true)
    expect(reply.slice(0, -5)).toEqual(replied)
  })

  it('change to RESP3, which has maps and null, and back', async () => {
    const node = await start()
    const reply = await ask(node, 'HELLO 3', 'CLIENT GETNAME', 'COMMAND DOCS', 'HELLO 2', 'CLIENT GETNAME')
    expect(reply).toMatch(/^%7\r\n\$6\r\nserver\r\n.*_\r\n%0\r\n\*14\r\n.*\$-1\r\n\+OK\r\n$/s)
  })
})

describe('CL.THROTTLE', () => {
  it('replies with five numbers in the order of redis-cell', async () => {
    const node = await start()
    const call = 'CL.THROTTLE user 15 30 60'
    expect(await ask(node, call)).toContain('*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n')
    expect(await ask(node, `${call} 15`)).toContain('*5\r\n:0\r\n:16\r\n:0\r\n:-1\r\n:32\r\n')
    expect(await ask(node, call)).toContain('*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n')
    expect(await ask(node, `${call} 17`)).toContain('*5\r\n:1\r\n:16\r\n:0\r\n:-1\r\n:32\r\n')
    expect(await ask(node, `${call} 0`)).toContain('*5\r\n:0\r\n:16\r\n:0\r\n:-1\r\n:32\r\n')
  })

  it.each([
    ['CL.THROTTLE k 1 1', 'wrong number of arguments. Usage: CL.THROTTLE <key> <max_burst>'],
    ['CL.THROTTLE k 1 0 1', 'Zero rates are not supported'],
    ['CL.THROTTLE k 1 1 0', 'Zero rates are not supported'],
    ['CL.THROTTLE k -1 1 1', 'value is not an integer or out of range'],
    ['CL.THROTTLE k 1 1.5 1', 'value is not an integer or out of range'],
    ['CL.THROTTLE k 1 1 1 x', 'value is not an integer or out of range'],
    ['CL.THROTTLE k 9999999999 1 1', 'value is out of range: at most 1000000000'],
    ['CL.THROTTLE "" 1 1 1', 'the key must have 1 to 4096 bytes'],
  ])('rejects %s', async (sent, error) => {
    expect(await ask(await start(), sent)).toContain(`-ERR ${error}`)
  })

  it('tells keys apart by their bytes', async () => {
    const node = await start()
    const connection = new RawConnection(node.respPort)
    const command = (key: Buffer): Buffer =>
      Buffer.concat([
        Buffer.from(`*5\r\n$11\r\nCL.THROTTLE\r\n$${key.length}\r\n`),
        key,
        Buffer.from('\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n'),
      ])
    for (const key of [Buffer.from([0xff]), Buffer.from([0xfe]), Buffer.from('\u{FFFD}')]) connection.send(command(key))
    connection.send('QUIT\r\n')
    expect((await connection.end()).match(/\*5\r\n:0/g)).toHaveLength(3)
  })

  it('answers a pipeline in its order, in one piece', async () => {
    const node = await start()
    const chunks: string[] = []
    const socket = connect(node.respPort, '127.0.0.1')
    socket.setEncoding('latin1').on('data', (text: string) => chunks.push(text))
    const lines = Array.from({ length: 40 }, (_, index) => `CL.THROTTLE k 9 10 60\r\nECHO ${index}\r\n`)
    socket.write(`${lines.join('')}QUIT\r\n`)
    await new Promise((resolve) => socket.once('close', resolve))
    expect(chunks).toHaveLength(1)
    expect([...chunks[0]!.matchAll(/\$\d\r\n(\d+)\r\n/g)].map(([, text]) => Number(text))).toEqual(
      Array.from({ length: 40 }, (_, index) => index),
    )
    expect(chunks[0]!.match(/\*5\r\n:0/g)).toHaveLength(10)
  })
})

describe('keys', () => {
  it('are needed on an address that others reach, before anything else', async () => {
    const node = await start({ checkKey: true })
    const bad = `slk_abc_${'x'.repeat(43)}`
    const reply = await ask(node, 'PING', 'CL.THROTTLE k 1 1 1', 'HELLO 3', `AUTH ${bad}`, 'PING')
    expect(reply.match(/^-NOAUTH /gm)).toHaveLength(4)
    expect(reply).toContain('-WRONGPASS There is no such API key.')
    // In the words of this protocol, which has no headers.
    expect(await ask(node, 'AUTH secret')).toMatch(
      /^-WRONGPASS This is no API key\. One looks like slk_<id>_<secret>\.\r\n/,
    )
    const good = await ask(node, `AUTH ${node.adminKey}`, 'PING', 'RESET', 'PING')
    expect(good).toMatch(/^\+OK\r\n\+PONG\r\n\+RESET\r\n-NOAUTH /)
    expect(await ask(node, `HELLO 3 AUTH default ${node.adminKey}`, 'PING')).toContain('+PONG')
    expect(await (await fetch(`${node.origin}/readyz`)).text()).toMatch(
      /"listener resp","ready":true,"detail":"127\.0\.0\.1:\d+; API key needed"/,
    )
  })

  it('that are revoked are good for a second more at most', async () => {
    const node = await start({ checkKey: true })
    const made = await node.admin('POST', '/admin/api-keys', { body: { name: 'resp', role: 'none' } })
    const { token, apiKey } = (await made.json()) as {
      readonly token: string
      readonly apiKey: { readonly id: string }
    }
    const connection = new RawConnection(node.respPort)
    connection.send(`AUTH ${token}\r\n`)
    await connection.until('+OK')
    expect((await node.admin('DELETE', `/admin/api-keys/${apiKey.id}`)).ok).toBe(true)
    node.advance(1_000_001)
    connection.send('PING\r\n')
    await connection.until('-NOAUTH')
    connection.close()
  })

  it('of the role editor are needed to reset counters', async () => {
    const node = await start()
    const check = 'SLUICE.CHECK RESOURCE /api/v1/data USER u1 COST 40'
    expect(await ask(node, check, 'SLUICE.RESET USER u1')).toContain('-NOAUTH SLUICE.RESET needs AUTH')
    const made = await node.admin('POST', '/admin/api-keys', { body: { name: 'viewer', role: 'viewer' } })
    const { token } = (await made.json()) as { readonly token: string }
    expect(await ask(node, `AUTH ${token}`, 'SLUICE.RESET USER u1')).toContain('-NOPERM This key has the role "viewer"')
    const reply = await ask(node, `AUTH ${node.adminKey}`, 'SLUICE.RESET USER u1', check)
    expect(reply).toMatch(/^\+OK\r\n:[1-9]\d*\r\n/)
    expect(reply).toContain('$9\r\nremaining\r\n:60\r\n')
    expect(await (await node.admin('GET', '/admin/audit')).text()).toContain('counters.reset')
  })

  it('of a tenant check in the name of the tenant, and count on their own', async () => {
    const node = await start()
    const made = await node.admin('POST', '/admin/api-keys', { body: { name: 'a', role: 'editor', tenant: 'acme' } })
    const { token } = (await made.json()) as { readonly token: string }
    const throttle = 'CL.THROTTLE k 4 1 60'
    expect(await ask(node, `AUTH ${token}`, throttle, throttle)).toContain(':3\r\n:-1\r\n')
    expect(await ask(node, throttle)).toContain('*5\r\n:0\r\n:5\r\n:4\r\n')
    const other = await ask(node, `AUTH ${token}`, 'SLUICE.CHECK RESOURCE /x TENANT other', 'SLUICE.RESET USER u')
    expect(other.match(/^-NOPERM /gm)).toHaveLength(2)
  })
})

describe('what is no command', () => {
  it.each(['POST /internal HTTP/1.1', 'Host: x', 'GET / HTTP/1.1', 'post'])('closes at %s', async (line) => {
    const node = await start()
    const connection = new RawConnection(node.respPort)
    connection.send(`${line}\r\nCL.THROTTLE k 1 1 60\r\n`)
    expect(await connection.end()).toBe('')
  })

  it.each([
    ['*1\r\n$100000000\r\n', '-ERR Protocol error: invalid bulk length'],
    ['*1\r\n'.repeat(1_000_000), "-ERR Protocol error: expected '$', got '*'"],
    ['x'.repeat(100_000), '-ERR Protocol error: too big inline request'],
  ])('is answered with an error and a close (%#)', async (bytes, error) => {
    const node = await start()
    const connection = new RawConnection(node.respPort)
    connection.send(bytes)
    expect(await connection.end()).toContain(error)
    expect(await ask(node, 'PING')).toContain('+PONG')
  })

  it('is closed when the rest does not come in time', async () => {
    const node = await start()
    const half = new RawConnection(node.respPort)
    const idle = new RawConnection(node.respPort)
    half.send('*2\r\n$4\r\nECHO\r\n$10\r\nabc')
    idle.send('PING\r\n')
    await idle.until('+PONG')
    await expect.poll(() => node.service.ports.resp).toBeDefined()
    node.advance(10_000_001)
    await node.endWaits(1000)
    expect(await half.end()).toBe('')
    idle.send('PING\r\n')
    await idle.until('+PONG\r\n+PONG')
    idle.close()
  })

  it('of which a part is always here stays open: each command has its own time', async () => {
    const node = await start()
    const connection = new RawConnection(node.respPort)
    connection.send('PI')
    for (let round = 1; round <= 3; round++) {
      connection.send('NG\r\nPI')
      await connection.until('+PONG\r\n'.repeat(round))
      node.advance(6_000_000)
      await node.endWaits(1000)
    }
    connection.send('NG\r\nQUIT\r\n')
    expect(await connection.end()).toBe(`${'+PONG\r\n'.repeat(4)}+OK\r\n`)
  })

  it('is closed without a key in time, whatever is sent', async () => {
    const node = await start({ checkKey: true })
    const connection = new RawConnection(node.respPort)
    for (let round = 1; round <= 2; round++) {
      connection.send('PING\r\n')
      await connection.until('-NOAUTH Authentication required. Send AUTH with an API key.\r\n'.repeat(round))
      node.advance(6_000_000)
      await node.endWaits(1000)
    }
    expect(await connection.end()).toContain('-NOAUTH')
  })

  it('of any kind leaves the service answering', async () => {
    const node = await start()
    const part = fc.oneof(
      fc.constantFrom(
        '*3\r\n',
        '$5\r\n',
        'PING\r\n',
        'SLUICE.CHECK ',
        'CL.THROTTLE k 1 1 1\r\n',
        '"',
        '\0',
        'HELLO 3\r\n',
      ),
      fc.string({ unit: 'binary', maxLength: 30 }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.boolean(), async (parts, cutsOff) => {
        const connection = new RawConnection(node.respPort)
        connection.send(Buffer.from(parts.join(''), 'latin1'))
        if (!cutsOff) connection.send('\r\nPING\r\n')
        connection.close()
        expect(await ask(node, 'PING')).toBe('+PONG\r\n+OK\r\n')
      }),
      { numRuns: 150 },
    )
    expect(node.errors).toEqual([])
  })
})

describe('flow', () => {
  it('of a client that does not read its replies stops, and goes on when it does', async () => {
    const node = await start()
    const socket = connect(node.respPort, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    const text = 'x'.repeat(1000)
    const commands = 20_000
    socket.pause()
    for (let index = 0; index < commands; index++) socket.write(`ECHO ${text}\r\n`)
    expect(await ask(node, 'PING')).toContain('+PONG')
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    socket.resume()
    await expect.poll(() => received, { timeout: 20_000 }).toBe(commands * 1009)
  })

  it('of a client that ends its side is answered to the end', async () => {
    const node = await start()
    const socket = connect({ port: node.respPort, host: '127.0.0.1', allowHalfOpen: true })
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk
    })
    socket.end('PING\r\nECHO end\r\n')
    await new Promise((resolve) => socket.once('end', resolve))
    expect(received).toBe('+PONG\r\n$3\r\nend\r\n')
  })

  it('under too much load is rejected at once, and counts nothing', async () => {
    const node = await start()
    node.setLoopDelay(1500)
    node.advance(250_000)
    expect(await ask(node, 'CL.THROTTLE k 0 1 60')).toContain('-OVERLOADED ')
    node.setLoopDelay(0)
    node.advance(250_000)
    expect(await ask(node, 'CL.THROTTLE k 0 1 60')).toContain('*5\r\n:0\r\n')
  })

  it('is counted by command and outcome', async () => {
    const node = await start()
    await ask(node, 'CL.THROTTLE k 0 1 60', 'CL.THROTTLE k 0 1 60', 'nope', 'CL.THROTTLE k', 'PING')
    const shown = await (await fetch(`${node.origin}/metrics`)).text()
    for (const line of [
      'command="cl.throttle",outcome="ok"} 1',
      'command="cl.throttle",outcome="denied"} 1',
      'command="cl.throttle",outcome="error"} 1',
      'command="other",outcome="error"} 1',
      'command="ping",outcome="ok"} 1',
    ]) {
      expect(shown).toContain(`sluice_resp_commands_total{${line}`)
    }
  })
  it('is counted as checks of one resource, except calls that take nothing', async () => {
    const node = await start()
    await ask(node, 'CL.THROTTLE k 9 1 60', 'CL.THROTTLE k 9 1 60 8', 'CL.THROTTLE k 9 1 60 8')
    await ask(node, 'CL.THROTTLE k 9 1 60 11', 'CL.THROTTLE k 9 1 60 0', 'CL.THROTTLE other 9 1 60 10')
    const shown = await (await fetch(`${node.origin}/metrics`)).text()
    for (const line of [
      'ratelimit_checks_total{dimension="key",resource="CL.THROTTLE",result="allowed"} 3',
      'ratelimit_checks_total{dimension="key",resource="CL.THROTTLE",result="denied"} 2',
      'ratelimit_denials_total{dimension="key",resource="CL.THROTTLE"} 2',
      'ratelimit_near_limit_total{dimension="key",resource="CL.THROTTLE"} 2',
      'ratelimit_decisions_total{reason="allowed"} 3',
      'ratelimit_decisions_total{reason="limit"} 1',
      'ratelimit_decisions_total{reason="never"} 1',
      'sluice_ad_hoc_limits 1',
    ]) {
      expect(shown).toContain(`${line}\n`)
    }
  })

  it('reaches the alert about denials', async () => {
    const rule = { leastSamples: 2, threshold: 0.4, forSeconds: 0 }
    const alerts = { options: { 'denial-rate': rule }, webhooks: [] }
    const node = await startRealService({ resp: { port: 0, tls: undefined }, alerts })
    onTestFinished(() => node.stop())
    await ask(node, 'CL.THROTTLE k 0 1 60', 'CL.THROTTLE k 0 1 60')
    await expect
      .poll(async () => await (await node.admin('GET', '/admin/alerts')).text(), { timeout: 20_000 })
      .toMatch(/denial-rate.*firing/s)
  })

  it('counts store errors, and decisions by failure mode', async () => {
    const redis = {
      urls: [`redis://127.0.0.1:${await freePort()}`],
      failureMode: 'closed',
      isCluster: false,
      sentinel: undefined,
      prefix: 'sluice',
      leases: false,
      deadlineMs: 50,
    } as const
    const node = await startRealService({ resp: { port: 0, tls: undefined }, redis })
    onTestFinished(() => node.stop())
    expect(await ask(node, 'CL.THROTTLE k 0 1 60', 'CL.THROTTLE k 0 1 60')).toContain('*5\r\n:1\r\n')
    const shown = await (await fetch(`${node.origin}/metrics`)).text()
    expect(shown).toContain('ratelimit_failure_mode_checks_total{mode="closed"} 2\n')
    expect(shown).toContain('ratelimit_decisions_total{reason="unavailable"} 2\n')
    expect(shown).toMatch(/ratelimit_store_failures_total\{[^}]*\} [1-9]/)
  })

  it('of too many different limits is rejected with what to do', async () => {
    const node = await start({ maxAdHocLimits: 2 })
    await ask(node, 'CL.THROTTLE k 0 1 60', 'CL.THROTTLE k 0 2 60')
    expect(await ask(node, 'CL.THROTTLE k 0 3 60')).toBe(
      '-ERR more than 2 different limits. Use the same numbers for many keys, or a rule and SLUICE.CHECK, or raise ' +
        '--max-ad-hoc-limits of the service.\r\n+OK\r\n',
    )
    expect(await ask(node, 'CL.THROTTLE l 0 2 60')).toContain('*5\r\n:0\r\n')
  })
})
