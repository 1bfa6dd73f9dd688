/** How a program prints its heap usage on request, in bytes. */
export const HEAP_LINE: RegExp = /^heap in use: (\d+)$/
