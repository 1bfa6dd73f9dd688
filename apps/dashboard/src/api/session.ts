import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { ApiKeyRole, OperationId, Session, SessionState } from '@sluice/contract'
import { errorOf } from './api-error.ts'
import { setCsrfToken, whenSignedOut } from './client.ts'
import { noteReachable, serviceUrl } from './connection.ts'
import { OPERATION_ROUTES } from './operation-routes.ts'

/** `unknown`: not asked yet. `none`: nobody is signed in. */
export type SignedIn = Session | 'unknown' | 'none'

const current = signal<SignedIn>('unknown')

/** Who is signed in here. */
export const session: ReadonlySignal<SignedIn> = current

/** Asks whether the cookie of this browser belongs to a session, and follows its end. */
export async function startSession(): Promise<void> {
  whenSignedOut(() => {
    current.value = 'none'
  })
  try {
    await enter(await fetch(serviceUrl('/auth/session'), { credentials: 'same-origin', cache: 'no-store' }))
  } catch {
    noteReachable(false)
    current.value = 'none'
  }
}

/** Exchanges an API key for a session. The key is kept nowhere. Rejects with an `ApiError`. */
export async function signIn(apiKey: string): Promise<void> {
  const response = await fetch(serviceUrl('/auth/session'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey }),
    credentials: 'same-origin',
  })
  await enter(response)
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await fetch(serviceUrl('/auth/session'), { method: 'DELETE', credentials: 'same-origin' })
  current.value = 'none'
}

/** The role of who is signed in; `none` without a session. Reading it in a component follows the session. */
export function currentRole(): ApiKeyRole {
  const { value } = current
  return typeof value === 'object' ? value.role : 'none'
}

/** Whether who is signed in may call an operation. Reading it in a component follows the session. */
export function mayCall(id: OperationId): boolean {
  return OPERATION_ROUTES[id].roles.includes(currentRole())
}

async function enter(response: Response): Promise<void> {
  if (!response.ok) throw await errorOf(response)
  const state = (await response.json()) as SessionState
  setCsrfToken(state.csrfToken ?? '')
  noteReachable(true)
  current.value = state.session ?? 'none'
}
