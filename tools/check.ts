// `npm run check`: the part of `npm test` that runs no tests.

import { runSteps, terminal } from './run-steps.ts'
import { checks } from './static-checks.ts'
import { runTool } from './tool-error.ts'

await runTool(() => runSteps(checks, terminal))
