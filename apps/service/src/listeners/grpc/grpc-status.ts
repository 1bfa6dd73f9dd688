import type { Answer } from '../../operations/handler.ts'
import { answerToError } from '../../operations/problems.ts'
import { ProtobufError } from './protobuf.ts'
import { InvalidRequestError } from './rate-limit-messages.ts'

/** The statuses that calls end with, by name. */
export const GRPC_STATUS = {
  OK: 0,
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const

/** The name of a status. */
export type GrpcStatus = keyof typeof GRPC_STATUS

/** Ends a call with a status other than OK. The message is sent to the client. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError'
  readonly status: Exclude<GrpcStatus, 'OK'>

  constructor(status: Exclude<GrpcStatus, 'OK'>, message: string) {
    super(message)
    this.status = status
  }
}

/** Problems of the HTTP API by their status. All others say that the service could not decide: UNAVAILABLE. */
const OF_HTTP: Readonly<Record<number, Exclude<GrpcStatus, 'OK'>>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  429: 'RESOURCE_EXHAUSTED',
}

/** The status that tells of a problem of the HTTP API. */
export function grpcErrorOfAnswer({ status, body }: Answer): GrpcError {
  const { detail } = JSON.parse(body) as { readonly detail: string }
  return new GrpcError(OF_HTTP[status] ?? 'UNAVAILABLE', detail)
}

/** The status that a call ends with for an error; undefined for a failure of the service itself. */
export function grpcErrorOf(error: unknown): GrpcError | undefined {
  if (error instanceof GrpcError) return error
  if (error instanceof InvalidRequestError) return new GrpcError('INVALID_ARGUMENT', error.message)
  // As gRPC specifies for messages that cannot be parsed.
  if (error instanceof ProtobufError)
    return new GrpcError('INTERNAL', `The message is malformed: ${error.message}. Expected a protobuf message.`)
  const answer = answerToError(error)
  return answer && grpcErrorOfAnswer(answer)
}

/** A string as the header `grpc-message` has it. */
export function encodedMessage(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll(PLAIN_AGAIN, decodeURIComponent)
}

/** Printable ASCII but `%`, which need not be encoded. */
const PLAIN_AGAIN = /%(?:2[0-46-9A-F]|3[A-F]|40|5[B-E]|60|7[B-D])/g
