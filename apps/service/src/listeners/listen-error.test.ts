import { expect, it } from 'vitest'
import { listenError } from './listener.ts'

it.each([
  ['EADDRINUSE', 8080, 'SLUICE_SERVICE_PORT_IN_USE', 'PORT=8081'],
  ['EADDRINUSE', 65_535, 'SLUICE_SERVICE_PORT_IN_USE', 'PORT=8080'],
  ['EACCES', 80, 'SLUICE_SERVICE_PORT_FORBIDDEN', 'PORT=8080'],
  ['EADDRNOTAVAIL', 8080, 'SLUICE_SERVICE_HOST_UNAVAILABLE', 'HOST=127.0.0.1'],
  ['ENOTFOUND', 8080, 'SLUICE_SERVICE_HOST_UNAVAILABLE', 'HOST=0.0.0.0'],
  ['EMFILE', 8080, 'SLUICE_SERVICE_LISTEN_FAILED', 'no more files'],
])('%s on port %d is %s and says what to do', (systemCode, port, code, hint) => {
  const cause = Object.assign(new Error('no more files'), { code: systemCode })
  const error = listenError(cause, { host: 'here', port, variables: { port: 'PORT', host: 'HOST' } })
  expect(error).toMatchObject({ code, cause })
  expect(error.message).toContain(hint)
  expect(error.message.startsWith(`${code}: `)).toBe(true)
})
