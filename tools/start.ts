// `npm start`: builds the dashboard when its sources are newer than it, then becomes the service. Arguments are those
// of the service.
import { ensureDashboard } from './dashboard-build.ts'
import { runTool } from './tool-error.ts'

await runTool(async () => {
  if (!process.argv.includes('--help') && !process.argv.includes('--no-dashboard')) {
    await ensureDashboard()
    console.error('sluice: to see it with live traffic, run `npm run demo`')
  }
  await import('../apps/service/src/main.ts')
})
