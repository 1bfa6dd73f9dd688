import Fastify from 'fastify'
import { rateLimit } from 'sluice/fastify'

const app = Fastify()

await app.register(rateLimit, { limit: 5, window: '1m' })
app.get('/', () => 'hello\n')
// A route may have a limit of its own, or none.
app.get('/health', { config: { rateLimit: false } }, () => 'well\n')

console.log(await app.listen({ port: process.env.PORT ?? 3000, host: '127.0.0.1' }))
process.once('SIGTERM', () => app.close())
