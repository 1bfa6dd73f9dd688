/**
 * Every detectable misuse with its meaning. Codes are public: they are never renamed or reused. A test keeps this list
 * equal to `docs/reference/misuse.md`.
 */
export const MISUSES = {
  SLUICE_USE_PROXY_NOT_TRUSTED:
    'Requests come through a proxy that is not trusted: all its clients count as one caller.',
  SLUICE_USE_PROXY_TRUST_TOO_WIDE: 'More proxies are trusted than there are: clients may choose their own address.',
  SLUICE_USE_LIMITER_IN_HANDLER:
    'A limiter is made for each request: every one begins at zero, and nothing is limited.',
  SLUICE_USE_COUNTED_TWICE: 'One request passes the same limit twice and is charged each time.',
  SLUICE_USE_SHARED_NAME: 'Two different limits have one name: counters, headers or reports are mixed up.',
  SLUICE_USE_MEMORY_IN_CLUSTER:
    'Several processes count for themselves: together they let through a multiple of the limit.',
  SLUICE_USE_SHORT_WINDOW: 'A window is given as a number below 1000: milliseconds, where seconds may have been meant.',
  SLUICE_USE_STORE_AWAY: 'The store is unavailable: requests are answered by the failure mode.',
  SLUICE_USE_NO_ADDRESS: 'Requests have no address to be counted by: all of them count as one caller.',
} as const

/** One of the codes in {@link MISUSES}. */
export type MisuseCode = keyof typeof MISUSES

/** A likely mistake in how a limiter is used. It never changes a decision. */
export interface MisuseWarning {
  readonly code: MisuseCode
  /** What was observed and what to do. */
  readonly message: string
  /** Link to the explanation of the code. */
  readonly docs: string
}

/** Receives misuse warnings. */
export type MisuseListener = (warning: MisuseWarning) => void

/** Path in the project that installed the package. */
const REFERENCE = 'node_modules/sluice/docs/reference/misuse.md'

/** Link to the explanation of a code. */
export function misuseDocs(code: MisuseCode): string {
  return `${REFERENCE}#${code.toLowerCase()}`
}

/** Emits a process warning, or writes to the console on runtimes without `process.emitWarning`. */
export function warnProcess({ code, message, docs }: MisuseWarning): void {
  const text = `${message} See ${docs}`
  if (typeof process !== 'undefined' && typeof process.emitWarning === 'function') {
    process.emitWarning(text, { type: 'SluiceWarning', code })
    return
  }
  // biome-ignore lint/suspicious/noConsole: runtimes other than Node have nothing else to warn by
  console.warn(`[${code}] ${text}`)
}
