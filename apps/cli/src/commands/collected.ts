import type { CommandContext } from '../command.ts'

/** All items of a list, with progress by their number. */
export async function collected<T>(items: AsyncIterable<T>, { progress, url }: CommandContext): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) {
    all.push(item)
    if (all.length % 1000 === 0) progress.say(`asking ${url}: ${all.length} so far`)
  }
  return all
}
