import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

/** Biome wraps code at this width, but neither strings nor comments. */
const MAX_COLUMNS = 120

const SOURCE = /\.(?:ts|tsx|mjs|lua)$/

it('no line of a source file is longer than 120 columns', () => {
  const tooLong = repositoryFiles(repositoryRoot)
    .filter((path) => SOURCE.test(path))
    .flatMap((path) => {
      const lines = readFileSync(join(repositoryRoot, path), 'utf8').split('\n')
      return lines.flatMap((line, index) => (line.length > MAX_COLUMNS ? [`${path}:${index + 1}`] : []))
    })
  expect(tooLong).toEqual([])
})
