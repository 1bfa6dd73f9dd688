import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as servers from './index.ts'

it('is named in the README with everything that it exports', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  expect(Object.keys(servers).filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
})
