import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { ApiKeyRole, OperationId, Session, SessionState } from '@sluice/contract'
import { every } from '../clock-and-timers.ts'
import { call, setCsrfToken, whenSignedOut } from './client.ts'
import { OPERATION_ROUTES } from './operation-routes.ts'

/** `unknown`: not requested yet. `none`: not signed in. */
export type SignedIn = Session | 'unknown' | 'none'

const RENEWAL_MS = 60_000
const SIGNS_OF_LIFE = ['pointerdown', 'pointermove', 'keydown', 'wheel'] as const

const current = signal<SignedIn>('unknown')

/** Who is signed in here. */
export const session: ReadonlySignal<SignedIn> = current

/** Asks whether the cookie of this browser belongs to a session, and follows it to its end. */
export async function startSession(): Promise<void> {
  whenSignedOut(() => {
    current.value = 'none'
  })
  renewWhileUsed()
  try {
    enter(await call('session'))
  } catch {
    // The service does not answer; the sign-in says so when it is tried.
    current.value = 'none'
  }
}

/** Exchanges an API key for a session. The key is kept nowhere. Rejects with an `ApiError`. */
export async function signIn(apiKey: string): Promise<void> {
  enter(await call('signIn', { body: { apiKey } }))
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await call('signOut')
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

function enter(state: SessionState): void {
  setCsrfToken(state.csrfToken ?? '')
  current.value = state.session ?? 'none'
}

/** A session ends when it is idle. Streams do not count as use, so a page that somebody reads has to say so. */
function renewWhileUsed(): void {
  let isUsed = false
  for (const name of SIGNS_OF_LIFE) {
    const note = (): void => {
      isUsed = true
    }
    document.addEventListener(name, note, { passive: true, capture: true })
  }
  every(RENEWAL_MS, () => {
    if (!isUsed || typeof current.peek() !== 'object') return
    isUsed = false
    // A failure shows in the next call that somebody waits for.
    call('session').then(enter, () => undefined)
  })
}
