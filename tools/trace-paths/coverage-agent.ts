// Preloaded into a service with an IPC channel: answers `take` with the functions that were called since the last one.

import { Coverage } from './coverage.ts'

const coverage = await Coverage.start()
process.on('message', (message) => {
  if (message === 'take') {
    void coverage.take().then((called) => process.send?.({ event: 'called', called: [...called] }))
  }
})
