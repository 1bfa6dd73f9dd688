/** A URL without user, password and parameters, for messages. */
export function shownUrl(text: string): string {
  if (!URL.canParse(text)) return '(an address that cannot be read)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}
