/**
 * Every way to use a limiter that works and is yet a mistake, with what it means. Codes are part of the public API: they are
 * never renamed or reused. A test holds this list equal to `docs/reference/misuse.md`.
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
  SLUICE_USE_STORE_AWAY: 'The store could not be asked: requests are answered by what is set for that case.',
  SLUICE_USE_NO_ADDRESS: 'Requests have no address to be counted by: all of them count as one caller.',
} as const

/** One of the codes in {@link MISUSES}. */
export type MisuseCode = keyof typeof MISUSES

/** A mistake in how a limiter is used, found while it works. Nothing is denied or let through because of it. */
export interface MisuseWarning {
  readonly code: MisuseCode
  /** What was seen, and what to do. */
  readonly message: string
  /** Where the code is explained. */
  readonly docs: string
}

/** Is told of mistakes. */
export type MisuseListener = (warning: MisuseWarning) => void

/** In the folder of whoever has installed the package. */
const REFERENCE = 'node_modules/sluice/docs/reference/misuse.md'

/** The page and heading that explain a code. */
export function misuseDocs(code: MisuseCode): string {
  return `${REFERENCE}#${code.toLowerCase()}`
}

/** Tells the process, or the console where there is none: on standard error, under the code. */
export function warnProcess({ code, message, docs }: MisuseWarning): void {
  const text = `${message} See ${docs}`
  if (typeof process !== 'undefined' && typeof process.emitWarning === 'function') {
    process.emitWarning(text, { type: 'SluiceWarning', code })
    return
  }
  // biome-ignore lint/suspicious/noConsole: runtimes other than Node have nothing else to warn by
  console.warn(`[${code}] ${text}`)
}
