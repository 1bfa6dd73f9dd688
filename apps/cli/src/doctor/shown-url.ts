/** An address without user, password and parameters. */
export function shownUrl(text: string): string {
  if (!URL.canParse(text)) return 'an address that cannot be read'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

/** Why something failed, in one line. */
export function reasonOf(error: unknown): string {
  // Several addresses of one host, all of which failed, make an error without a message of its own.
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message.split('\n')[0]! : String(error)
}
