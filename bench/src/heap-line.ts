/** How a program that is asked prints what is in use of its heap, in bytes. */
export const HEAP_LINE: RegExp = /^heap in use: (\d+)$/
