// `npm run scripts`: writes the module that carries the Lua scripts of the Redis store, after one of them has changed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderScripts } from './lua-scripts.ts'
import { runTool } from './tool-error.ts'
import { repositoryRoot } from './workspace.ts'

const store = join(repositoryRoot, 'packages/store-redis')

await runTool(() => {
  writeFileSync(join(store, 'src/wire/scripts.ts'), renderScripts(join(store, 'lua')))
  console.log('packages/store-redis/src/wire/scripts.ts written')
})
