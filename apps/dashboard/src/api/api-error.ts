import type { FieldProblem, ProblemDocument } from '@sluice/contract'

/**
 * Why a call failed. `problem`: the service answered with a problem document. `offline`: no answer arrived.
 * `unreadable`: something else than the service answered, such as a proxy.
 */
export type ApiErrorKind = 'problem' | 'offline' | 'unreadable'

/** A call that failed. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly kind: ApiErrorKind
  /** The HTTP status; 0 when no answer arrived. */
  readonly status: number
  readonly problem: ProblemDocument | undefined

  constructor(
    kind: ApiErrorKind,
    status: number,
    details: { problem?: ProblemDocument; message: string; cause?: unknown },
  ) {
    super(details.message, { cause: details.cause })
    this.kind = kind
    this.status = status
    this.problem = details.problem
  }

  /** The title to show above the details. */
  get title(): string {
    if (this.problem !== undefined) return this.problem.title
    return this.kind === 'offline' ? 'The service does not answer' : 'The answer is not from the service'
  }

  /** Each thing that is wrong with what was sent. */
  get fields(): readonly FieldProblem[] {
    return this.problem?.errors ?? []
  }

  /** Whether somebody else changed it since it was read. */
  get isConflict(): boolean {
    return this.status === 409 || this.status === 412
  }
}

/** `error` as an {@link ApiError}, so that it can be shown; a bug in the page is shown too. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError('unreadable', 0, { message: error instanceof Error ? error.message : String(error) })
}

/** Whether a call ended because the page no longer wants its answer. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}

/** The error for an answer of 400 or above. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response
  const body: unknown = await response.json().catch(() => undefined)
  if (isProblem(body)) return new ApiError('problem', status, { problem: body, message: body.detail })
  return new ApiError('unreadable', status, {
    message:
      `Received HTTP status ${status} without a problem document. Expected an answer of the service. ` +
      'Check what stands in front of it.',
  })
}

function isProblem(body: unknown): body is ProblemDocument {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body && 'title' in body
}
