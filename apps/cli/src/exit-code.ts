/** What the exit code of the command says. Codes are part of the public interface: they are never changed. */
export const EXIT_CODES = {
  ok: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  unreachable: 4,
  unauthorized: 5,
  interrupted: 130,
} as const

/** One of {@link EXIT_CODES}. */
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES]

/** What each exit code means, in the words of the help. */
export const EXIT_CODE_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'success',
  1: 'failure',
  2: 'invalid command line or file',
  3: 'check: the call is denied',
  4: 'the service is unreachable',
  5: 'API key missing, invalid, or lacking permission',
  130: 'interrupted',
}
