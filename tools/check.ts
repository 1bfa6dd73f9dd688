// `npm run check`: the part of `npm test` that runs no tests.

import { runStages, terminal } from './stages.ts'
import { checks } from './static-checks.ts'
import { runTool } from './tool-error.ts'

await runTool(() => runStages(checks, terminal))
