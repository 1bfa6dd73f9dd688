import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { isPromise } from '../http/maybe-promise.ts'
import type { AddressTiers } from './address-tiers.ts'
import type { CompiledTrust } from './client-address.ts'
import { clientAddress } from './client-address.ts'
import type { Identity, IdentityAnswer, KeySource } from './identity.ts'
import { fromAddress, knownIdentity } from './identity.ts'

/** Cost of a request: a whole number of units, 0 or more. */
export type CostSource<Context> = number | ((context: Context, request: HttpRequest) => MaybePromise<number>)

/** Called when a request counts by its address because its key function returned no identity. */
export type AddressListener = (request: HttpRequest, address: string | undefined) => void

/** Reads identity and cost of a request. */
export class RequestReader<Context> {
  readonly tiers: AddressTiers
  readonly #trust: CompiledTrust
  readonly #onAddress: AddressListener

  constructor(trust: CompiledTrust, tiers: AddressTiers, onAddress: AddressListener) {
    this.#trust = trust
    this.tiers = tiers
    this.#onAddress = onAddress
  }

  /** Client address, or undefined when unknown. */
  addressOf(request: HttpRequest): string | undefined {
    return clientAddress(request, this.#trust)
  }

  /** Client address of a request without a better identity. Notifies the listener. */
  fallbackAddressOf(request: HttpRequest): string | undefined {
    const address = this.addressOf(request)
    this.#onAddress(request, address)
    return address
  }

  /** Identity of the caller. */
  identityOf(source: KeySource<Context>, context: Context, request: HttpRequest): MaybePromise<Identity> {
    if (source === 'ip') return fromAddress(this.addressOf(request))
    const answer = source(context, request)
    return isPromise(answer)
      ? answer.then((later) => this.#identified(later, request))
      : this.#identified(answer, request)
  }

  /** Counter key of the caller. */
  keyOf(source: KeySource<Context>, context: Context, request: HttpRequest): MaybePromise<string> {
    const identity = this.identityOf(source, context, request)
    return isPromise(identity) ? identity.then((later) => this.tiers.keyOf(later)) : this.tiers.keyOf(identity)
  }

  /** Cost of the request. */
  costOf(source: CostSource<Context>, context: Context, request: HttpRequest): MaybePromise<number> {
    return typeof source === 'number' ? source : source(context, request)
  }

  #identified(answer: IdentityAnswer, request: HttpRequest): Identity {
    return knownIdentity(answer) ?? fromAddress(this.fallbackAddressOf(request))
  }
}
