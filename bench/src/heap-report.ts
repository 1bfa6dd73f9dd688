// Loaded before a program that is watched: on SIGUSR2 it collects garbage and prints what is in use of its heap.
process.on('SIGUSR2', () => {
  globalThis.gc?.()
  console.log(`heap in use: ${process.memoryUsage().heapUsed}`)
})
