import type { StoreError } from '@sluice/core/internal'
import { storeUnavailable } from '@sluice/core/internal'

/**
 * A command that a client says it never wrote: nothing has happened.
 *
 * @param partial - whether other keys, on other nodes, are not concerned
 */
export function notSent(client: string, cause: unknown, partial = false): StoreError {
  return storeUnavailable({
    because: 'unreachable',
    partial,
    problem: `${client} did not send the command: ${textOf(cause)}`,
    action: 'It is connected again by itself; see that the server runs and can be reached.',
    cause,
  })
}

/** An answer of the server that a client tells in words of its own, in the form of the protocol: code, space, text. */
export function serverAnswer(answer: string, cause: unknown): Error {
  return new Error(answer, { cause })
}

function textOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return cause.message === '' ? cause.constructor.name : cause.message
}
