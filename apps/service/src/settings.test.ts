import { describe, expect, it } from 'vitest'
import { readSettings } from './settings.ts'

describe('readSettings', () => {
  it('works with nothing set: port 8080, this machine only', () => {
    expect(readSettings({})).toEqual({ host: '127.0.0.1', port: 8080 })
    expect(readSettings({ PORT: '', HOST: '' })).toEqual({ host: '127.0.0.1', port: 8080 })
  })

  it.each([
    ['0', 0],
    ['8081', 8081],
    ['65535', 65_535],
  ])('takes port %s', (text, port) => expect(readSettings({ PORT: text }).port).toBe(port))

  it.each(['0.0.0.0', '::', '::1', 'fe80::1%eth0', 'localhost', 'node-1.example.com'])('takes host %s', (host) =>
    expect(readSettings({ HOST: host }).host).toBe(host),
  )

  it.each(['65536', '-1', '80.5', '1e3', '0x50', ' 80', 'http', '999999'])('refuses port %j', (port) => {
    expect(() => readSettings({ PORT: port })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_SERVICE_INVALID_SETTING',
        received: `PORT="${port}"`,
        expected: 'PORT to be a whole number from 0 to 65535',
      }),
    )
  })

  it.each(['http://localhost', 'localhost:8080', '127.0.0.1:80', 'a b', '*', 'host:'])('refuses host %j', (host) => {
    expect(() => readSettings({ HOST: host })).toThrow(
      expect.objectContaining({ code: 'SLUICE_SERVICE_INVALID_SETTING', received: `HOST="${host}"` }),
    )
  })

  it('names everything that is wrong at once', () => {
    expect(() => readSettings({ HOST: '*', PORT: 'x' })).toThrow('HOST="*" and PORT="x"')
  })
})
