import type { DescriptorDomain, DescriptorNode } from '@sluice/contract'

/** The titles of {@link domainRows}. */
export const DOMAIN_TITLES: readonly string[] = ['domain', 'descriptor', 'limit', 'window', 'name', 'notes']

/** The limits of a domain, in rows of a table. */
export function domainRows({ domain, descriptors }: DescriptorDomain): readonly (readonly string[])[] {
  return descriptors.flatMap((node) => nodeRows(node, [])).map((row) => [domain, ...row])
}

function nodeRows(node: DescriptorNode, above: readonly string[]): readonly (readonly string[])[] {
  const { key, value, limit, descriptors = [] } = node
  const path = [...above, value === undefined ? key : `${key}=${value}`]
  const below = descriptors.flatMap((each) => nodeRows(each, path))
  if (limit === undefined) return below
  const { requestsPerUnit, unit, name } = limit
  const row = [path.join(' '), requestsPerUnit ?? 'unlimited', unit ?? '-', name ?? '-', notesOf(node)]
  return [row.map(String), ...below]
}

function notesOf({ shadow, quota }: DescriptorNode): string {
  const notes = [shadow === true ? 'shadow' : undefined, quota === true ? 'quota' : undefined]
  return notes.filter((note) => note !== undefined).join(' ') || '-'
}
