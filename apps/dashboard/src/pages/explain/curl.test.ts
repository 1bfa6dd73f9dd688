import { describe, expect, it } from 'vitest'
import { readPasted, shellWords } from './curl.ts'

function requestIn(text: string): unknown {
  return readPasted(text)?.request
}

describe('curl', () => {
  it.each([
    ['curl https://api.example.com/orders', { resource: '/orders', method: 'GET' }],
    ['$ curl -s https://api.example.com', { resource: '/', method: 'GET' }],
    ['curl "https://api.example.com/orders?page=2#x"', { resource: '/orders', method: 'GET' }],
    ['curl -XPUT localhost:8080/a/b', { resource: '/a/b', method: 'PUT' }],
    ['curl -X POST -d \'{"a":1}\' http://h/orders', { resource: '/orders', method: 'POST' }],
    ["curl http://h/orders --data-raw 'a=1'", { resource: '/orders', method: 'POST' }],
    ["curl -G -d 'q=1' http://h/search", { resource: '/search', method: 'GET' }],
    ['curl -I http://h/a', { resource: '/a', method: 'HEAD' }],
    ['curl --request=DELETE --url http://h/a/1', { resource: '/a/1', method: 'DELETE' }],
    ['curl -u me:secret -o out.txt http://h/a', { resource: '/a', method: 'GET' }],
  ])('%s', (command, request) => {
    expect(requestIn(command)).toEqual(request)
  })

  it('takes callers from headers, over several lines', () => {
    const command = `curl 'https://api.example.com/orders' \\
      -H 'X-User-Id: ada' \\
      -H "X-Tenant-Id: acme" -H 'x-api-key:key-1' \\
      -H 'X-Forwarded-For: 203.0.113.9, 198.51.100.7' \\
      -H $'X-Region: EU'`
    expect(requestIn(command)).toEqual({
      resource: '/orders',
      method: 'GET',
      user: 'ada',
      tenant: 'acme',
      apiKey: 'key-1',
      ip: '198.51.100.7',
      region: 'EU',
    })
  })

  it('leaves secrets out, and says so', () => {
    const pasted = readPasted("curl -H 'Authorization: Bearer slk_abc_def' http://h/a")
    expect(pasted?.request).toEqual({ resource: '/a', method: 'GET' })
    expect(pasted?.notes).toEqual([expect.stringContaining('Authorization header was left out')])
    expect(JSON.stringify(pasted)).not.toContain('slk_abc')
  })

  it('without a URL is nothing', () => {
    expect(readPasted('curl -s')).toBeUndefined()
  })
})

describe('other texts', () => {
  it('takes a request line, a URL, a path and the JSON of a check', () => {
    expect(requestIn('POST /orders HTTP/1.1\nHost: h\nX-User-Id: ada')).toEqual({
      resource: '/orders',
      method: 'POST',
      user: 'ada',
    })
    expect(requestIn('https://h/orders/17')).toEqual({ resource: '/orders/17', method: 'GET' })
    expect(requestIn('/orders/17')).toEqual({ resource: '/orders/17', method: 'GET' })
    expect(readPasted('{"resource":"/orders","userId":"ada","tokens":2,"colour":"red"}')).toEqual({
      request: { resource: '/orders', user: 'ada', tokens: 2 },
      notes: ['"colour" is no field of a check, and was left out.'],
    })
  })

  it.each(['', 'hello world', '{"a"', 'POST'])('%j is nothing', (text) => {
    expect(readPasted(text)).toBeUndefined()
  })
})

describe('shellWords', () => {
  it.each([
    [`a 'b c' "d \\"e\\"" f\\ g`, ['a', 'b c', 'd "e"', 'f g']],
    [`a'b'"c"d ''`, ['abcd', '']],
    ['a \\\n  b', ['a', 'b']],
    [`it's`, ["it's"]],
  ])('%j', (text, words) => {
    expect(shellWords(text)).toEqual(words)
  })
})
