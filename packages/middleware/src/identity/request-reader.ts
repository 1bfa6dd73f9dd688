import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { isPromise } from '../http/maybe-promise.ts'
import type { AddressTiers } from './address-tiers.ts'
import type { CompiledTrust } from './client-address.ts'
import { clientAddress } from './client-address.ts'
import type { Identity, IdentityAnswer, KeySource } from './identity.ts'
import { fromAddress, knownIdentity } from './identity.ts'

/** The cost of a request: units, whole, 0 or more. */
export type CostSource<Context> = number | ((context: Context, request: HttpRequest) => MaybePromise<number>)

/** Is told of a request that something else was to say who it counts for, and that its address counts all the same. */
export type AddressListener = (request: HttpRequest, address: string | undefined) => void

/** Reads off a request who it counts for, and how much. */
export class RequestReader<Context> {
  readonly tiers: AddressTiers
  readonly #trust: CompiledTrust
  readonly #onAddress: AddressListener

  constructor(trust: CompiledTrust, tiers: AddressTiers, onAddress: AddressListener) {
    this.#trust = trust
    this.tiers = tiers
    this.#onAddress = onAddress
  }

  /** Where the request comes from; undefined when that is not known. */
  addressOf(request: HttpRequest): string | undefined {
    return clientAddress(request, this.#trust)
  }

  /** The same, for a request of which nothing better is known. */
  fallbackAddressOf(request: HttpRequest): string | undefined {
    const address = this.addressOf(request)
    this.#onAddress(request, address)
    return address
  }

  /** Who the request counts for. */
  identityOf(source: KeySource<Context>, context: Context, request: HttpRequest): MaybePromise<Identity> {
    if (source === 'ip') return fromAddress(this.addressOf(request))
    const answer = source(context, request)
    return isPromise(answer)
      ? answer.then((later) => this.#identified(later, request))
      : this.#identified(answer, request)
  }

  /** The counter of whoever the request counts for. */
  keyOf(source: KeySource<Context>, context: Context, request: HttpRequest): MaybePromise<string> {
    const identity = this.identityOf(source, context, request)
    return isPromise(identity) ? identity.then((later) => this.tiers.keyOf(later)) : this.tiers.keyOf(identity)
  }

  /** What the request costs. */
  costOf(source: CostSource<Context>, context: Context, request: HttpRequest): MaybePromise<number> {
    return typeof source === 'number' ? source : source(context, request)
  }

  #identified(answer: IdentityAnswer, request: HttpRequest): Identity {
    return knownIdentity(answer) ?? fromAddress(this.fallbackAddressOf(request))
  }
}
