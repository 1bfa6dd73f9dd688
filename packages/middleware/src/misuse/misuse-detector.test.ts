import { describe, expect, it, vi } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { compileTrust, type TrustedProxies } from '../identity/client-address.ts'
import { isOneOfMany, MisuseDetector, processFacts } from './misuse-detector.ts'
import { MisuseRegistry } from './misuse-registry.ts'
import { MISUSES, type MisuseWarning, misuseDocs, warnProcess } from './misuse-warning.ts'

function requestFrom(peerAddress: string | undefined, headers: Readonly<Record<string, string>> = {}): HttpRequest {
  return { method: 'GET', url: '/', route: undefined, peerAddress, header: (name) => headers[name] }
}

interface DetectorSetup {
  readonly name?: string
  readonly counters?: object
  readonly trustProxy?: TrustedProxies
}

/** A process of its own, in which desks are opened, and what they warned of. */
function freshProcess() {
  const record = new MisuseRegistry()
  const warnings: MisuseWarning[] = []
  const warn = (warning: MisuseWarning) => void warnings.push(warning)
  const open = ({ name = 'default', counters = {}, trustProxy = false }: DetectorSetup = {}) =>
    new MisuseDetector({ name, counters, trust: compileTrust(trustProxy), warn, record })
  return { record, warnings, open, codes: () => warnings.map(({ code }) => code) }
}

/** What stands in a method until the event loop goes on: a limiter made before it is no longer new. */
const nextTurn = () => Promise.resolve()

describe('a forwarded header from a proxy that is not trusted', () => {
  it.each([
    ['127.0.0.1', 'x-forwarded-for'],
    ['::ffff:10.0.0.7', 'forwarded'],
    ['fd00::1', 'x-forwarded-for'],
  ])('from %s in %s is reported once', (peerAddress, header) => {
    const { warnings, open } = freshProcess()
    const request = requestFrom(peerAddress, { [header]: 'x' })
    open().proxyNotTrusted(request)
    open({ name: 'other' }).proxyNotTrusted(request)
    expect(warnings).toEqual([
      {
        code: 'SLUICE_USE_PROXY_NOT_TRUSTED',
        message: expect.stringMatching(new RegExp(`${peerAddress}.*"${header}".*Set "trustProxy" to the number`)),
        docs: 'node_modules/sluice/docs/reference/misuse.md#sluice_use_proxy_not_trusted',
      },
    ])
  })

  it.each<[TrustedProxies, string]>([
    [1, '8.8.8.8, 10.0.0.5'],
    [2, '8.8.8.8, 10.0.0.5, 10.0.0.6'],
    ['loopback', '8.8.8.8, 10.0.0.5'],
    [['loopback', '10.0.0.6'], '8.8.8.8, 10.0.0.5, 10.0.0.6'],
  ])('is reported for a further proxy behind those that are trusted by %j, in %s', (trustProxy, forwarded) => {
    const { warnings, open } = freshProcess()
    open({ trustProxy }).proxyNotTrusted(requestFrom('127.0.0.1', { 'x-forwarded-for': forwarded }))
    expect(warnings).toMatchObject([
      {
        code: 'SLUICE_USE_PROXY_NOT_TRUSTED',
        message: expect.stringContaining('A request came through 10.0.0.5, which is not on the Internet'),
      },
    ])
  })

  it.each<[TrustedProxies, string]>([
    [1, '10.0.0.5'],
    [1, '10.0.0.5, 8.8.8.8'],
    [1, '8.8.8.8, 127.0.0.1'],
    [1, '8.8.8.8, ::1'],
    [1, 'unknown, 10.0.0.5'],
    [2, '8.8.8.8, 10.0.0.5'],
    [['loopback', 'private'], '8.8.8.8, 10.0.0.5'],
    [['loopback', 'private'], '8.8.8.8, unknown, 10.0.0.5'],
    [{ proxies: 1, header: 'x-real-ip' }, '8.8.8.8, 10.0.0.5'],
  ])('is nothing to tell when %j reads %s', (trustProxy, forwarded) => {
    const { warnings, open } = freshProcess()
    const headers = { 'x-forwarded-for': forwarded, 'x-real-ip': '8.8.8.8' }
    open({ trustProxy }).proxyNotTrusted(requestFrom('127.0.0.1', headers))
    expect(warnings).toEqual([])
  })

  it('says how a header is read that is not the usual one', () => {
    const { warnings, open } = freshProcess()
    open().proxyNotTrusted(requestFrom('127.0.0.1', { 'x-real-ip': '8.8.8.8' }))
    expect(warnings[0]!.message).toContain('with a header "x-real-ip"')
    expect(warnings[0]!.message).toContain('{ proxies: 1, header: "x-real-ip" }')
  })

  it.each<[TrustedProxies, Record<string, string>, string]>([
    [1, { 'x-real-ip': '8.8.8.8' }, 'no "x-forwarded-for"'],
    ['loopback', { forwarded: 'for=8.8.8.8' }, 'no "x-forwarded-for"'],
    [{ proxies: 1, header: 'x-real-ip' }, { 'x-forwarded-for': '8.8.8.8' }, 'no "x-real-ip"'],
  ])('is reported when %j has another header than %j', (trustProxy, headers, phrase) => {
    const { warnings, open } = freshProcess()
    open({ trustProxy }).proxyNotTrusted(requestFrom('127.0.0.1', headers))
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining(phrase)])
  })

  it('is reported where others are trusted', () => {
    const { codes, open } = freshProcess()
    open({ trustProxy: 'loopback' }).proxyNotTrusted(requestFrom('10.0.0.7', { 'x-forwarded-for': '1.2.3.4' }))
    expect(codes()).toEqual(['SLUICE_USE_PROXY_NOT_TRUSTED'])
  })

  it.each<[string, TrustedProxies, string | undefined, Record<string, string>]>([
    ['there is no header', false, '127.0.0.1', {}],
    ['a stranger sends it', false, '192.0.2.1', { 'x-forwarded-for': '1.2.3.4' }],
    ['the peer has no address', false, undefined, { 'x-forwarded-for': '1.2.3.4' }],
    ['it is trusted by number', 1, '127.0.0.1', { 'x-forwarded-for': '1.2.3.4' }],
    ['it is trusted by address', 'loopback', '127.0.0.1', { 'x-forwarded-for': '1.2.3.4' }],
  ])('is nothing to tell when %s', (_name, trustProxy, peerAddress, headers) => {
    const { warnings, open } = freshProcess()
    open({ trustProxy }).proxyNotTrusted(requestFrom(peerAddress, headers))
    expect(warnings).toEqual([])
  })
})

describe('too much trust', () => {
  it('in a network that holds everybody is reported at the start, once for each name', () => {
    const { warnings, open } = freshProcess()
    open({ trustProxy: ['loopback', '0.0.0.0/0'] })
    open({ trustProxy: '0.0.0.0/0' })
    open({ name: 'other', trustProxy: '::/0' })
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('trusts 0.0.0.0/0'),
      expect.stringContaining('trusts ::/0'),
    ])
    expect(warnings[0]!.code).toBe('SLUICE_USE_PROXY_TRUST_TOO_WIDE')
  })

  it('in more proxies than the header has entries is reported once', () => {
    const { warnings, open } = freshProcess()
    const detector = open({ trustProxy: 3 })
    detector.proxyTrustTooWide(requestFrom('10.0.0.1', { 'x-forwarded-for': '1.1.1.1, 2.2.2.2' }))
    detector.proxyTrustTooWide(requestFrom('10.0.0.1', { 'x-forwarded-for': '1.1.1.1' }))
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /there are 3 proxies, and a header "x-forwarded-for" has 2 entries\. Count the proxies again/,
      ),
    ])
  })

  it.each<[TrustedProxies, Record<string, string>]>([
    [3, {}],
    [3, { 'x-forwarded-for': '1.1.1.1, 2.2.2.2, 3.3.3.3' }],
    [1, { 'x-forwarded-for': '1.1.1.1' }],
    [['10.0.0.0/8'], { 'x-forwarded-for': '1.1.1.1' }],
    [false, { 'x-forwarded-for': '1.1.1.1' }],
  ])('is not in %j with %j', (trustProxy, headers) => {
    const { warnings, open } = freshProcess()
    open({ trustProxy }).proxyTrustTooWide(requestFrom('10.0.0.1', headers))
    expect(warnings).toEqual([])
  })
})

describe('limiters made in a handler', () => {
  it('are reported at the tenth that is used where it is made and never again', () => {
    const { codes, open } = freshProcess()
    for (let request = 0; request < 9; request++) open().limiterInHandler()
    expect(codes()).toEqual([])
    open().limiterInHandler()
    expect(codes()).toEqual(['SLUICE_USE_LIMITER_IN_HANDLER'])
    for (let request = 0; request < 100; request++) open().limiterInHandler()
    expect(codes()).toEqual(['SLUICE_USE_LIMITER_IN_HANDLER'])
  })

  it('are not those that are made for a tenant and kept', () => {
    const { codes, open } = freshProcess()
    const first = open()
    first.limiterInHandler()
    first.limiterInHandler()
    for (let tenant = 0; tenant < 100; tenant++) open().limiterInHandler()
    expect(codes()).toEqual([])
  })

  it('are not those that are made before their first request', async () => {
    const { codes, open } = freshProcess()
    for (let app = 0; app < 100; app++) {
      const detector = open()
      await nextTurn()
      detector.limiterInHandler()
    }
    expect(codes()).toEqual([])
  })
})

describe('one request that is counted twice', () => {
  it('by one limiter is reported once', () => {
    const { warnings, open } = freshProcess()
    const detector = open({ name: 'login' })
    for (const request of [{}, {}]) {
      detector.countedTwice(request)
      detector.countedTwice(request)
    }
    expect(warnings).toEqual([
      {
        code: 'SLUICE_USE_COUNTED_TWICE',
        message: expect.stringContaining('charged twice under the name "login"'),
        docs: misuseDocs('SLUICE_USE_COUNTED_TWICE'),
      },
    ])
  })

  it('by two limiters with one name and store is the same', () => {
    const { codes, open } = freshProcess()
    const counters = {}
    const request = {}
    open({ counters }).countedTwice(request)
    open({ name: 'between', counters }).countedTwice(request)
    open({ counters }).countedTwice(request)
    expect(codes()).toEqual(['SLUICE_USE_COUNTED_TWICE'])
  })

  it('by two without known names is none, unless they are one', () => {
    const { codes, record } = freshProcess()
    const told: string[] = []
    const warn = ({ code }: MisuseWarning) => void told.push(code)
    const ask = (counters: object) =>
      new MisuseDetector({ name: 'default', isNamed: false, counters, trust: compileTrust(false), warn, record })
    const [request, engine] = [{}, {}]
    ask(engine).countedTwice(request)
    ask({}).countedTwice(request)
    expect([codes(), told]).toEqual([[], []])
    ask(engine).countedTwice(request)
    expect(told).toEqual(['SLUICE_USE_COUNTED_TWICE'])
  })

  it('is none when names differ, or requests do', () => {
    const { codes, open } = freshProcess()
    const counters = {}
    const one = open({ name: 'one', counters })
    const other = open({ name: 'other', counters })
    const request = {}
    one.countedTwice(request)
    other.countedTwice(request)
    one.countedTwice({})
    expect(codes()).toEqual([])
  })
})

describe('one name for two limits', () => {
  /** A place outside the process, where the name was chosen. */
  const remote = (rule: string) => ({ space: 'redis', rule, isGiven: true })

  it('with different rules outside the process is reported, once for each name', () => {
    const { codes, warnings, open } = freshProcess()
    open({ name: 'api' }).sharedName(remote('a rule'))
    open({ name: 'api' }).sharedName(remote('a rule'))
    open({ name: 'login' }).sharedName(remote('another rule'))
    expect(codes()).toEqual([])
    open({ name: 'api' }).sharedName(remote('another rule'))
    open({ name: 'api' }).sharedName(remote('a third rule'))
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
    expect(warnings[0]!.message).toContain('"api" is not unique. Two limiters with different rules')
  })

  it('in two places that cannot be the same is nothing to tell', () => {
    const { codes, open } = freshProcess()
    open().sharedName({ space: 'orders', rule: 'a rule', isGiven: false })
    open().sharedName({ space: 'users', rule: 'another rule', isGiven: false })
    open().sharedName({ space: {}, rule: 'a rule', isGiven: false })
    open().sharedName({ space: {}, rule: 'a rule', isGiven: false })
    expect(codes()).toEqual([])
  })

  it.each<[string, object | string, string]>([
    ['one store', {}, 'count on one store'],
    ['stores outside the process', 'redis', 'count on stores that are or may be the same'],
  ])('that is the default is reported for %s, also when the rules are the same', (_what, space, phrase) => {
    const { warnings, open } = freshProcess()
    for (let count = 0; count < 3; count++) open().sharedName({ space, rule: 'a rule', isGiven: false })
    expect(warnings).toMatchObject([
      { code: 'SLUICE_USE_SHARED_NAME', message: expect.stringContaining(`"default" is not unique. Two limiters`) },
    ])
    expect(warnings[0]!.message).toContain(phrase)
    expect(warnings[0]!.message).toContain('If they are meant to count together, give them the same.')
  })

  it('that one of the two has chosen is meant', () => {
    const { codes, open } = freshProcess()
    const space = {}
    open().sharedName({ space, rule: 'a rule', isGiven: false })
    open().sharedName({ space, rule: 'a rule', isGiven: true })
    expect(codes()).toEqual([])
  })

  it('is free again when a limiter is closed', () => {
    const { codes, open } = freshProcess()
    const space = {}
    for (let count = 0; count < 3; count++) {
      const detector = open()
      detector.sharedName({ space, rule: 'a rule', isGiven: false })
      detector.close()
      detector.close()
    }
    const [one, other] = [open(), open()]
    one.sharedName({ space, rule: 'a rule', isGiven: false })
    expect(codes()).toEqual([])
    other.sharedName({ space, rule: 'a rule', isGiven: false })
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
  })

  it('is remembered for a thousand names at most', () => {
    const { codes, record, open } = freshProcess()
    for (let tenant = 0; tenant < 1000; tenant++) record.nameRule('redis', `tenant-${tenant}`, 'a rule')
    open({ name: 'tenant-1000' }).sharedName(remote('a rule'))
    open({ name: 'tenant-1000' }).sharedName(remote('another rule'))
    expect(codes()).toEqual([])
    open({ name: 'tenant-999' }).sharedName(remote('another rule'))
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
  })

  it('is reported when one request passes both', () => {
    const { codes, open } = freshProcess()
    const request = {}
    open().countedTwice(request)
    open().countedTwice(request)
    expect(codes()).toEqual(['SLUICE_USE_SHARED_NAME'])
  })
})

describe('a memory store in one of several processes', () => {
  it('is reported once', () => {
    const { codes, open } = freshProcess()
    open().memoryInCluster({ isClusterWorker: true, instance: undefined })
    open().memoryInCluster({ isClusterWorker: false, instance: '3' })
    expect(codes()).toEqual(['SLUICE_USE_MEMORY_IN_CLUSTER'])
  })

  it('is nothing to tell in this process', () => {
    const { codes, open } = freshProcess()
    open().memoryInCluster()
    expect(codes()).toEqual([])
  })

  it.each([
    [{ isClusterWorker: false, instance: undefined }, false],
    [{ isClusterWorker: false, instance: '' }, false],
    [{ isClusterWorker: false, instance: '0' }, false],
    [{ isClusterWorker: false, instance: '1' }, true],
    [{ isClusterWorker: false, instance: 'blue' }, false],
    [{ isClusterWorker: true, instance: '0' }, true],
  ])('of %j is one of many: %j', (facts, isMany) => {
    expect(isOneOfMany(facts)).toBe(isMany)
  })

  it('is known from what Node and process managers say', () => {
    const alone = { isClusterWorker: false, instance: undefined }
    expect(processFacts(undefined)).toEqual(alone)
    expect(processFacts({})).toEqual(alone)
    expect(processFacts({ env: { NODE_APP_INSTANCE: '2' } })).toEqual({ ...alone, instance: '2' })
    const getBuiltinModule = (name: string) => (name === 'node:cluster' ? { isWorker: true } : undefined)
    expect(processFacts({ env: {}, getBuiltinModule })).toEqual({ isClusterWorker: true, instance: undefined })
  })
})

describe('a request without an address', () => {
  it('is reported once', () => {
    const { codes, open } = freshProcess()
    const detector = open()
    detector.noAddress('1.2.3.4')
    expect(codes()).toEqual([])
    detector.noAddress(undefined)
    detector.noAddress(undefined)
    expect(codes()).toEqual(['SLUICE_USE_NO_ADDRESS'])
  })
})

describe('a short window', () => {
  it('is reported when it is a number, once for each name', () => {
    const { warnings, open } = freshProcess()
    open().shortWindow([undefined, '1m', 60])
    open().shortWindow([30])
    open({ name: 'login' }).shortWindow([15])
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('"default" is the number 60, which is milliseconds. Write "60s" for seconds.'),
      expect.stringContaining('"login" is the number 15, which is milliseconds. Write "15s" for seconds.'),
    ])
  })

  it('is meant when it has a unit, or is a second', () => {
    const { codes, open } = freshProcess()
    open().shortWindow(['60ms', 1000, undefined, { calendar: 'day' }])
    expect(codes()).toEqual([])
  })
})

describe('an unavailable store', () => {
  it('is reported once, with what was answered', () => {
    const { warnings, open } = freshProcess()
    open().storeAway({ mode: 'open', cause: 'unreachable' })
    open({ name: 'other' }).storeAway({ mode: 'closed', cause: 'deadline' })
    expect(warnings).toMatchObject([
      { code: 'SLUICE_USE_STORE_AWAY', message: expect.stringMatching(/"default".*unreachable.*"open".*See that/) },
    ])
  })

  it('is reported again, once, when the store has said what is wrong', () => {
    const { warnings, open } = freshProcess()
    const detector = open()
    const detail = 'SLUICE_STORE_UNAVAILABLE: WRONGPASS. Give the client the right user name and password.'
    detector.storeAway({ mode: 'open', cause: 'deadline' })
    for (let times = 0; times < 3; times++) detector.storeAway({ mode: 'open', cause: 'refused', detail })
    expect(warnings).toHaveLength(2)
    expect(warnings[1]!.message).toContain(
      `(refused): a request was answered by the failure mode "open". It said: ${detail}`,
    )
    expect(warnings[1]!.message).not.toContain('See that the server runs')
  })
})

describe('the detector', () => {
  it('meets a request with all checks', () => {
    const { codes, open } = freshProcess()
    const detector = open()
    const context = {}
    detector.meet(context)
    detector.meet(context)
    detector.meetAddress(requestFrom('127.0.0.1', { forwarded: 'for=1.2.3.4' }), '127.0.0.1')
    detector.meetAddress(requestFrom(undefined), undefined)
    expect(codes()).toEqual(['SLUICE_USE_COUNTED_TWICE', 'SLUICE_USE_PROXY_NOT_TRUSTED', 'SLUICE_USE_NO_ADDRESS'])
    const wide = open({ name: 'wide', trustProxy: 2 })
    wide.meetAddress(requestFrom('10.0.0.1', { 'x-forwarded-for': '1.2.3.4' }), '1.2.3.4')
    expect(codes().at(-1)).toBe('SLUICE_USE_PROXY_TRUST_TOO_WIDE')
  })

  it('watches the first thousand requests, then two in a row of 1,024', () => {
    const detector = freshProcess().open()
    const watched = Array.from({ length: 1024 * 5 }, () => detector.watches())
    expect(watched.slice(0, 1000)).not.toContain(false)
    expect(watched.slice(1000, 1024)).not.toContain(true)
    expect(watched.slice(1024, 2048)).toEqual(Array.from({ length: 1024 }, (_, index) => index < 2))
    expect(watched.slice(1024).filter(Boolean)).toHaveLength(8)
  })

  it('says of the last request whether it was watched', () => {
    const detector = freshProcess().open()
    const watched = Array.from({ length: 1026 }, () => [detector.watches(), detector.isWatching])
    expect(watched.filter(([one, other]) => one !== other)).toEqual([])
    expect(watched.at(-2)).toEqual([true, true])
  })

  it('tells each listener', () => {
    const record = new MisuseRegistry()
    const told: string[] = []
    for (const name of ['one', 'other', 'other']) {
      const warn = () => void told.push(name)
      const options = { name, counters: {}, trust: compileTrust(false), warn, record }
      new MisuseDetector(options).noAddress(undefined)
      new MisuseDetector(options).noAddress(undefined)
    }
    expect(told).toEqual(['one', 'other', 'other'])
  })
})

describe('a warning', () => {
  it('is one of the process, with its code and page', () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    warnProcess({ code: 'SLUICE_USE_NO_ADDRESS', message: 'Seen. Do.', docs: 'page.md' })
    expect(emit.mock.calls).toEqual([
      ['Seen. Do. See page.md', { type: 'SluiceWarning', code: 'SLUICE_USE_NO_ADDRESS' }],
    ])
  })

  it('goes to the console where there is no process', () => {
    const lines: unknown[] = []
    vi.stubGlobal('process', undefined)
    vi.stubGlobal('console', { warn: (line: unknown) => lines.push(line) })
    warnProcess({ code: 'SLUICE_USE_NO_ADDRESS', message: 'Seen. Do.', docs: 'page.md' })
    vi.unstubAllGlobals()
    expect(lines).toEqual(['[SLUICE_USE_NO_ADDRESS] Seen. Do. See page.md'])
  })

  it('has a page and heading for every code', () => {
    for (const code of Object.keys(MISUSES)) {
      expect(misuseDocs(code as keyof typeof MISUSES)).toBe(
        `node_modules/sluice/docs/reference/misuse.md#${code.toLowerCase()}`,
      )
    }
  })

  it('comes by the process when the limiter has no listener', () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const options = { name: 'default', counters: {}, trust: compileTrust(false), record: new MisuseRegistry() }
    new MisuseDetector(options).noAddress(undefined)
    new MisuseDetector(options).noAddress(undefined)
    expect(emit).toHaveBeenCalledTimes(1)
  })
})
