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
  0: 'it went well',
  1: 'it failed',
  2: 'the command line, or a file it names, cannot be used',
  3: 'check: a limit refuses the call',
  4: 'the service cannot be reached',
  5: 'the API key is missing, invalid, or not good for it',
  130: 'it was interrupted',
}
