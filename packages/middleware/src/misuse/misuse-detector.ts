import type { HttpRequest } from '../http/http-request.ts'
import { type CompiledTrust, entriesPresent, isNearby, isTrusted, untrustedHop } from '../identity/client-address.ts'
import { type CounterSpace, type MisuseRegistry, type PassedLimit, processRegistry } from './misuse-registry.ts'
import { type MisuseCode, type MisuseListener, misuseDocs, warnProcess } from './misuse-warning.ts'

/** What a detector needs to know about its limiter. */
export interface MisuseDetectorOptions {
  /** Name of the rule. */
  readonly name: string
  /** Whether `name` is the name of the counters. False if only the decider knows it. Default: true. */
  readonly isNamed?: boolean
  /** What keeps the counters: the store, or the engine or function in its place. */
  readonly counters: object
  readonly trust: CompiledTrust
  /** Receives warnings. Default: a process warning. */
  readonly warn?: MisuseListener | undefined
  /** Default: the registry of this process. */
  readonly record?: MisuseRegistry
}

/** All requests up to this number are inspected. */
const FIRST_REQUESTS = 1000
/** After that, two consecutive requests out of this many are inspected. */
const LATER_REQUESTS = 1024

/** Headers in which proxies report the client, most common first. */
const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip']

/** A smaller window was probably meant in seconds. */
const LEAST_PLAUSIBLE_MS = 1000

/**
 * Detects misuse of one limiter, with one method per kind. Each kind is reported once per listener; those about a name,
 * window or proxy once per name.
 *
 * Cost per request: one increment. {@link watches} returns true for the first 1,000 requests and for a sample of later
 * ones; only those are passed to {@link meet}.
 */
export class MisuseDetector {
  readonly #limit: PassedLimit
  readonly #trust: CompiledTrust
  readonly #warn: MisuseListener
  readonly #record: MisuseRegistry
  #requests = 0
  /** True until the current synchronous code has finished. */
  #isNew = true
  #isUsedAtOnce = false
  /** Space in which the limiter uses its name exclusively. */
  #taken: CounterSpace | undefined

  constructor(options: MisuseDetectorOptions) {
    const { name, isNamed = true, counters } = options
    this.#limit = { name, isNamed, counters }
    this.#trust = options.trust
    this.#warn = options.warn ?? warnProcess
    this.#record = options.record ?? processRegistry
    void Promise.resolve().then(() => {
      this.#isNew = false
    })
    this.proxyTrustTooWide()
  }

  /** Whether to pass the next request to {@link meet}. Call it once per request. */
  watches(): boolean {
    return isWatched(this.#requests++)
  }

  /** Whether the current request is inspected. */
  get isWatching(): boolean {
    return isWatched(this.#requests - 1)
  }

  /**
   * Checks for every inspected request. `context` is the request object of the framework, the same for all limiters.
   */
  meet(context: object): void {
    this.limiterInHandler()
    this.countedTwice(context)
  }

  /** Checks for a request that counts by the address of `clientAddress`. */
  meetAddress(request: HttpRequest, address: string | undefined): void {
    this.proxyNotTrusted(request)
    this.proxyTrustTooWide(request)
    this.noAddress(address)
  }

  /** A private proxy reports the client, but the proxy, its header or a proxy behind it is not trusted. */
  proxyNotTrusted(request: HttpRequest): void {
    const { peerAddress } = request
    const header = FORWARDING.find((name) => request.header(name) !== undefined)
    if (header === undefined) return
    if (!isTrusted(peerAddress, this.#trust)) {
      if (isNearby(peerAddress)) this.#tellNotTrusted(`came from ${peerAddress}`, header)
      return
    }
    if (request.header(this.#trust.header) === undefined) {
      if (isNearby(peerAddress)) this.#tellOtherHeader(header)
      return
    }
    const hop = untrustedHop(request, this.#trust)
    if (hop !== undefined) this.#tellNotTrusted(`came through ${hop}`, this.#trust.header)
  }

  /** Without a request: networks that include clients. With a request: fewer header entries than trusted proxies. */
  proxyTrustTooWide(request?: HttpRequest): void {
    const { hops, tooWide, header } = this.#trust
    if (request === undefined) {
      if (tooWide === undefined) return
      this.#tell('SLUICE_USE_PROXY_TRUST_TOO_WIDE', {
        seen: `"trustProxy" trusts ${tooWide}, to which callers belong too`,
        action: 'Name the networks of your proxies only: a caller that is taken for a proxy chooses its own address.',
        matter: this.#limit.name,
      })
      return
    }
    if (hops < 2) return
    const entries = entriesPresent(request, this.#trust)
    if (entries === 0 || entries >= hops) return
    this.#tell('SLUICE_USE_PROXY_TRUST_TOO_WIDE', {
      seen:
        `"trustProxy" says that there are ${hops} proxies, and a header "${header}" has ` +
        `${entries === 1 ? 'one entry' : `${entries} entries`}`,
      action:
        'Count the proxies again: with one too many, a caller chooses its own address by sending the header itself.',
      matter: this.#limit.name,
    })
  }

  /** Limiters are created per request and never reused. */
  limiterInHandler(): void {
    if (this.#isUsedAtOnce) this.#record.usedAgain()
    if (!this.#isNew) return
    this.#isNew = false
    this.#isUsedAtOnce = true
    if (!this.#record.usedAtOnce()) return
    this.#tell('SLUICE_USE_LIMITER_IN_HANDLER', {
      seen: 'Limiters are made while requests are handled, and each is used for one request only',
      action: 'Make the limiter once, outside the handler: a new one has counted nothing, and so never denies.',
    })
  }

  /** A request passes the same counters twice, or others with the same name. */
  countedTwice(context: object): void {
    const before = this.#record.pass(context, this.#limit)
    if (before === undefined) return
    const { name, counters } = this.#limit
    if (before.counters !== counters) {
      this.#tellSharedName('One request passes two limiters with it')
      return
    }
    this.#tell('SLUICE_USE_COUNTED_TWICE', {
      seen: `One request was charged twice under the name "${name}"`,
      action:
        'Put the limiter in one place, before the handlers, or give limits that are meant to differ names and ' +
        'stores of their own.',
      matter: name,
    })
  }

  /**
   * Call it when the limiter is created on a store that others may use. Limiters without a name do not intend to share;
   * limiters with one do, unless their rules differ, which is an error of the core on one store object.
   */
  sharedName({ space, rule, isGiven }: SharedPlace): void {
    const { name } = this.#limit
    if (!isGiven) {
      this.#taken = space
      if (!this.#record.take(space, name)) this.#tellUnnamed(space)
    }
    if (typeof space !== 'string' || this.#record.nameRule(space, name, rule)) return
    this.#tellSharedName('Two limiters with different rules have it on stores that may be the same')
  }

  /** Releases the name. Safe to call again. */
  close(): void {
    if (this.#taken !== undefined) this.#record.leave(this.#taken, this.#limit.name)
    this.#taken = undefined
  }

  /** Call it when the limiter is created on a memory store. Default for `facts`: the current process. */
  memoryInCluster(facts: ProcessFacts = ownFacts()): void {
    if (!isOneOfMany(facts)) return
    this.#tell('SLUICE_USE_MEMORY_IN_CLUSTER', {
      seen: 'A limiter counts in the memory of one of several processes',
      action: 'Use a store that they share, such as redisStore, or divide the limit by the number of processes.',
    })
  }

  /** Call it when the limiter is created, with the windows of its rules as written. */
  shortWindow(windows: readonly unknown[]): void {
    const short = windows.find((window) => typeof window === 'number' && window < LEAST_PLAUSIBLE_MS)
    if (short === undefined) return
    this.#tell('SLUICE_USE_SHORT_WINDOW', {
      seen: `A window of "${this.#limit.name}" is the number ${short}, which is milliseconds`,
      action: `Write "${short}s" for seconds. If milliseconds are meant, "${short}ms" says so.`,
      matter: this.#limit.name,
    })
  }

  /** To be called when a request was decided without the store. */
  storeAway({ mode, cause, detail }: DecidedWithout): void {
    const advice =
      detail === undefined ? 'See that the server runs and that its address is right.' : `It said: ${detail}`
    this.#tell('SLUICE_USE_STORE_AWAY', {
      seen:
        `The store of "${this.#limit.name}" was unavailable (${cause}): a request was answered by the failure ` +
        `mode "${mode}"`,
      action:
        `${advice} What to answer meanwhile is "failureMode": "open" limits nothing, "closed" denies all, ` +
        '"local" counts in this process.',
      // The first request may come before the store has said what is wrong.
      matter: detail === undefined ? '' : 'said',
    })
  }

  /** A request is to be counted by its address, and has none. */
  noAddress(address: string | undefined): void {
    if (address !== undefined) return
    this.#tell('SLUICE_USE_NO_ADDRESS', {
      seen: 'A request that is counted by its address has none',
      action:
        'Behind a proxy on a Unix socket, set "trustProxy" to the number of proxies. Elsewhere give a "key" that ' +
        'says who is calling.',
    })
  }

  #tellNotTrusted(came: string, header: string): void {
    const isUsual = header === 'x-forwarded-for' || header === this.#trust.header
    this.#tell('SLUICE_USE_PROXY_NOT_TRUSTED', {
      seen: `A request ${came}, which is not on the Internet and not a trusted proxy, with a header "${header}"`,
      action:
        'Set "trustProxy" to the number of proxies before this server, or to their ' +
        `addresses${isUsual ? '' : `, with the header: { proxies: 1, header: "${header}" }`}. Now all clients ` +
        'of a proxy share one limit.',
    })
  }

  #tellOtherHeader(header: string): void {
    this.#tell('SLUICE_USE_PROXY_NOT_TRUSTED', {
      seen:
        `A trusted proxy sent a header "${header}" and no "${this.#trust.header}", which is the one that ` +
        '"trustProxy" reads',
      action:
        `Name the header that the proxy writes: trustProxy: { proxies: 1, header: "${header}" }. Now all ` +
        'clients of a proxy share one limit.',
    })
  }

  #tellUnnamed(space: CounterSpace): void {
    const stores = typeof space === 'string' ? 'stores that are or may be the same' : 'one store'
    this.#tellSharedName(
      `Two limiters without a name count on ${stores}: what is used up under one is used up under the other`,
      ' If they are meant to count together, give them the same.',
    )
  }

  #tellSharedName(seen: string, addition = ''): void {
    this.#tell('SLUICE_USE_SHARED_NAME', {
      seen: `The name "${this.#limit.name}" is not unique. ${seen}`,
      action: `Give each of them a "name" of its own.${addition}`,
      matter: this.#limit.name,
    })
  }

  #tell(code: MisuseCode, { seen, action, matter = '' }: Finding): void {
    if (!this.#record.isNews(this.#warn, `${code} ${matter}`)) return
    this.#warn({ code, message: `${seen}. ${action}`, docs: misuseDocs(code) })
  }
}

/** Where a limiter may share counters. */
export interface SharedPlace {
  readonly space: CounterSpace
  /** A string that differs for different rules. */
  readonly rule: string
  /** Whether the user chose the name. */
  readonly isGiven: boolean
}

/** Why and how a request was decided without the store. */
interface DecidedWithout {
  readonly mode: string
  readonly cause: string
  readonly detail?: string | undefined
}

interface Finding {
  /** What was observed, without a full stop. */
  readonly seen: string
  readonly action: string
  /** Subject that is reported once. Default: one for all. */
  readonly matter?: string
}

function isWatched(request: number): boolean {
  return request < FIRST_REQUESTS || request % LATER_REQUESTS < 2
}

function ownFacts(): ProcessFacts {
  return processFacts(typeof process === 'undefined' ? undefined : process)
}

/** Facts about the process of a limiter. */
export interface ProcessFacts {
  /** Whether it is a worker of `node:cluster`. */
  readonly isClusterWorker: boolean
  /** Number assigned by a process manager such as PM2 (`NODE_APP_INSTANCE`). */
  readonly instance: string | undefined
}

/** The used part of `process` of Node. */
export interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly getBuiltinModule?: (name: string) => unknown
}

/** Facts about a process. Other runtimes than Node count as a single process. */
export function processFacts(from: ProcessLike | undefined): ProcessFacts {
  const cluster = from?.getBuiltinModule?.('node:cluster') as { readonly isWorker?: boolean } | undefined
  return { isClusterWorker: cluster?.isWorker === true, instance: from?.env?.['NODE_APP_INSTANCE'] }
}

/** Whether other processes share the work. Process managers number a single process 0. */
export function isOneOfMany({ isClusterWorker, instance }: ProcessFacts): boolean {
  return isClusterWorker || Number(instance ?? 0) > 0
}
