import type { Operation } from '@sluice/contract'
import { ClientError } from './client-error.ts'

/** Parameters of path and query, by name; those that are undefined are left out. */
export type ParameterValues = Readonly<Record<string, string | number | undefined>>

/** Where an operation is asked: its path and query below `base`, which has no slash at its end. */
export function operationUrl(base: string, operation: Operation, parameters: ParameterValues): string {
  const { path, parameters: declared } = operation
  const query: [string, string][] = []
  for (const [name, value] of Object.entries(parameters)) {
    const place = Object.hasOwn(declared, name) ? declared[name]?.in : undefined
    if (place === undefined) throw unusable(operation, `the parameter "${name}"`, known(operation))
    if (value !== undefined && typeof value !== 'string' && typeof value !== 'number') {
      throw unusable(
        operation,
        `"${name}" as ${Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`}`,
        'a text or a number',
      )
    }
    if (place === 'query' && value !== undefined) query.push([name, String(value)])
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathSegment(operation, name, parameters[name]))
  return query.length === 0 ? base + filled : `${base}${filled}?${new URLSearchParams(query)}`
}

function pathSegment(operation: Operation, name: string, value: string | number | undefined): string {
  const text = value === undefined ? '' : String(value)
  // Addresses read these as steps up, also where they are escaped.
  if (text !== '' && text !== '.' && text !== '..') return encodeURIComponent(text)
  throw unusable(operation, text === '' ? `no "${name}"` : `"${name}" as "${text}"`, `"${name}" for ${operation.path}`)
}

function known({ id, parameters }: Operation): string {
  const names = Object.keys(parameters)
  return names.length === 0 ? `none: "${id}" has no parameters` : `only ${names.join(', ')}`
}

function unusable({ id }: Operation, received: string, expected: string): ClientError {
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', {
    detail: `A call of "${id}" got ${received}; expected ${expected}. Nothing was sent.`,
  })
}
