import { createLimiter } from 'sluice'
import { limitedFetch, retryFetch } from 'sluice/client'
import { startApi } from './api.js'

const CALLS = [1, 2, 3, 4, 5]

const api = await startApi(process.env.PORT ?? 0)
const url = `http://127.0.0.1:${api.address().port}`

/** The statuses of five calls that are made at the same time. */
async function statuses(send, path) {
  const responses = await Promise.all(CALLS.map(() => send(`${url}${path}`)))
  return responses.map(({ status }) => status).sort()
}

// Tries again when the API says that it is too much, and not before the API says.
const patient = retryFetch()
// Never asks for too much: one call a second, however many are made.
const paced = limitedFetch({ limiter: createLimiter({ limit: 1, window: '1s' }) })

console.log('fetch       ', ...(await statuses(fetch, '/a')))
console.log('retryFetch  ', ...(await statuses(patient, '/b')))
console.log('limitedFetch', ...(await statuses(paced, '/c')))
api.close()
