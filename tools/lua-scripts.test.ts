import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { renderScripts } from './lua-scripts.ts'
import { repositoryRoot } from './workspace.ts'

describe('the Lua scripts in the package', () => {
  it('are those of the Lua files; after a change, npm run scripts', () => {
    const store = join(repositoryRoot, 'packages/store-redis')
    expect(readFileSync(join(store, 'src/scripts.ts'), 'utf8')).toBe(renderScripts(join(store, 'lua')))
  })
})
