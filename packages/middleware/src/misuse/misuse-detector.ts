import type { HttpRequest } from '../http/http-request.ts'
import { type CompiledTrust, entriesPresent, isNearby, isTrusted, untrustedHop } from '../identity/client-address.ts'
import { type CounterSpace, type MisuseRegistry, type PassedLimit, processRegistry } from './misuse-registry.ts'
import { type MisuseCode, type MisuseListener, misuseDocs, warnProcess } from './misuse-warning.ts'

/** What the detector of a limiter has to know of it. */
export interface MisuseDetectorOptions {
  /** Name of its rule. */
  readonly name: string
  /** Whether it is that of its counters, as when left out; false where only what is asked knows the name. */
  readonly isNamed?: boolean
  /** What keeps its counters: the store, or the engine or function that is asked in its place. */
  readonly counters: object
  readonly trust: CompiledTrust
  /** Is told; a warning of the process when left out. */
  readonly warn?: MisuseListener | undefined
  /** That of this process when left out. */
  readonly record?: MisuseRegistry
}

/** Every request is looked at up to this one, and few after it. */
const FIRST_REQUESTS = 1000
/** Of so many later requests, two in a row are looked at: the same request may come twice. */
const LATER_REQUESTS = 1024

/** Headers by which proxies name the client, the most usual first. */
const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip']

/** Whoever writes a window as a smaller number has probably thought of seconds. */
const LEAST_PLAUSIBLE_MS = 1000

/**
 * Looks for mistakes in how one limiter is used: one method for each kind. Each kind is told once to each listener, and so once
 * in a process where there is no listener of one's own; those about a limiter's name, window or proxies once for each name.
 *
 * All that has to be asked for a request is {@link watches}, and {@link meet} when it says so. It says so for the first 1,000
 * requests of a limiter and for one in 64 of the later ones, so that a request costs the increment of a number.
 */
export class MisuseDetector {
  readonly #limit: PassedLimit
  readonly #trust: CompiledTrust
  readonly #warn: MisuseListener
  readonly #record: MisuseRegistry
  #requests = 0
  /** True until whatever made the limiter has come to its end. */
  #isNew = true
  #isUsedAtOnce = false
  /** Where the limiter means to have its name for itself. */
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

  /** Whether the next request is to be shown to {@link meet}. To be asked once for each request. */
  watches(): boolean {
    return isWatched(this.#requests++)
  }

  /** Whether the request that {@link watches} was asked about last is looked at. */
  get isWatching(): boolean {
    return isWatched(this.#requests - 1)
  }

  /** The checks of every request. `context` is the framework's own object for it, the same for all limiters that it passes. */
  meet(context: object): void {
    this.limiterInHandler()
    this.countedTwice(context)
  }

  /** The checks of a request that is counted by its address, which is what `clientAddress` says. */
  meetAddress(request: HttpRequest, address: string | undefined): void {
    this.proxyNotTrusted(request)
    this.proxyTrustTooWide(request)
    this.noAddress(address)
  }

  /** A proxy of one's own names the client, and nobody listens: to the nearest proxy, to its header, or to one behind it. */
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

  /** Before the first request: networks that hold everybody. With a request: fewer entries in the header than proxies. */
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
      seen: `"trustProxy" says that there are ${hops} proxies, and a header "${header}" has ${entries === 1 ? 'one entry' : `${entries} entries`}`,
      action:
        'Count the proxies again: with one too many, a caller chooses its own address by sending the header itself.',
      matter: this.#limit.name,
    })
  }

  /** Limiters are used where they are made, again and again, and never a second time. */
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

  /** One request comes by the same counters again, or by others of the same name. */
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
        'Put the limiter in one place, before the handlers, or give limits that are meant to differ names and stores of their own.',
      matter: name,
    })
  }

  /**
   * To be called when the limiter is made on a store that others may count on too. Whoever gives no name does not mean to share
   * it; two that give the same name do, unless their rules differ, which on one store object is an error of the core.
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

  /** To be called when the limiter is closed: others may have its name. May be called again. */
  close(): void {
    if (this.#taken !== undefined) this.#record.leave(this.#taken, this.#limit.name)
    this.#taken = undefined
  }

  /** To be called when the limiter is made and counts in the memory of its process; `facts` are its own when left out. */
  memoryInCluster(facts: ProcessFacts = ownFacts()): void {
    if (!isOneOfMany(facts)) return
    this.#tell('SLUICE_USE_MEMORY_IN_CLUSTER', {
      seen: 'A limiter counts in the memory of one of several processes',
      action: 'Use a store that they share, such as redisStore, or divide the limit by the number of processes.',
    })
  }

  /** To be called when the limiter is made, with the windows of its rules as they were written. */
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
      seen: `The store of "${this.#limit.name}" could not be asked (${cause}): a request was answered by the failure mode "${mode}"`,
      action: `${advice} What to answer meanwhile is "failureMode": "open" limits nothing, "closed" denies all, "local" counts in this process.`,
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
        'Behind a proxy on a Unix socket, set "trustProxy" to the number of proxies. Elsewhere give a "key" that says who is calling.',
    })
  }

  #tellNotTrusted(came: string, header: string): void {
    const isUsual = header === 'x-forwarded-for' || header === this.#trust.header
    this.#tell('SLUICE_USE_PROXY_NOT_TRUSTED', {
      seen: `A request ${came}, which is not on the Internet and not a trusted proxy, with a header "${header}"`,
      action: `Set "trustProxy" to the number of proxies before this server, or to their addresses${isUsual ? '' : `, with the header: { proxies: 1, header: "${header}" }`}. Now all clients of a proxy share one limit.`,
    })
  }

  #tellOtherHeader(header: string): void {
    this.#tell('SLUICE_USE_PROXY_NOT_TRUSTED', {
      seen: `A trusted proxy sent a header "${header}" and no "${this.#trust.header}", which is the one that "trustProxy" reads`,
      action: `Name the header that the proxy writes: trustProxy: { proxies: 1, header: "${header}" }. Now all clients of a proxy share one limit.`,
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

/** Where a limiter counts together with others. */
export interface SharedPlace {
  readonly space: CounterSpace
  /** A text that is different for different rules. */
  readonly rule: string
  /** Whether somebody chose the name. */
  readonly isGiven: boolean
}

/** Why a request was decided without the store, and how. */
interface DecidedWithout {
  readonly mode: string
  readonly cause: string
  readonly detail?: string | undefined
}

interface Finding {
  /** What was seen, without a full stop. */
  readonly seen: string
  readonly action: string
  /** Things of which each is told once; all are one when left out. */
  readonly matter?: string
}

function isWatched(request: number): boolean {
  return request < FIRST_REQUESTS || request % LATER_REQUESTS < 2
}

function ownFacts(): ProcessFacts {
  return processFacts(typeof process === 'undefined' ? undefined : process)
}

/** What is known of the process that a limiter counts in. */
export interface ProcessFacts {
  /** Whether it is one of the workers of `node:cluster`. */
  readonly isClusterWorker: boolean
  /** The number that a process manager such as PM2 gave it (`NODE_APP_INSTANCE`); undefined when there is none. */
  readonly instance: string | undefined
}

/** The part of Node's `process` that is looked at. */
export interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly getBuiltinModule?: (name: string) => unknown
}

/** The facts of a process; those of one that is alone where nothing is known, as in runtimes other than Node. */
export function processFacts(from: ProcessLike | undefined): ProcessFacts {
  const cluster = from?.getBuiltinModule?.('node:cluster') as { readonly isWorker?: boolean } | undefined
  return { isClusterWorker: cluster?.isWorker === true, instance: from?.env?.['NODE_APP_INSTANCE'] }
}

/** Whether other processes do the same work. A manager numbers a single process too, with 0. */
export function isOneOfMany({ isClusterWorker, instance }: ProcessFacts): boolean {
  return isClusterWorker || Number(instance ?? 0) > 0
}
