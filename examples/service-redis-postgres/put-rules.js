import { createClient } from 'sluice/client'

const client = createClient({
  url: process.env.SLUICE_URL ?? 'http://127.0.0.1:8080',
  token: process.env.SLUICE_API_KEY,
})

const { resource, version } = await client.call('putRateLimits', {
  body: { resource: '/', rules: [{ name: 'hello', dimension: 'ip', limit: 5, window: '1m' }] },
})
console.log(`the limits of ${resource} are in force, in version ${version}`)
