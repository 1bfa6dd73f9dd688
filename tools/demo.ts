// `npm run demo`: the service with rules, generated traffic and the dashboard. State is in a folder that is removed at
// the end. REDIS_URL and DATABASE_URL: two nodes share both, which must be empty.
// --port <number>: default 8080. --gateway-port <number>: default 8000. --factor <number>: multiplies the traffic.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureDashboard } from './dashboard-build.ts'
import { startUpstreams } from './demo/demo-gateway.ts'
import type { DemoNode } from './demo/demo-service.ts'
import { putDemoRules, startNode } from './demo/demo-service.ts'
import { openSignInLink } from './demo/sign-in-link.ts'
import { startTraffic } from './demo/traffic.ts'
import { runTool, ToolError } from './tool-error.ts'

const REGIONS = ['EU', 'US'] as const

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '8080' },
    'gateway-port': { type: 'string', default: '8000' },
    factor: { type: 'string', default: '1' },
  },
})

await runTool(async () => {
  await ensureDashboard()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  const nodes: DemoNode[] = []
  process.on('exit', () => {
    for (const { process: child } of nodes) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const ports = ['--port', values.port, '--gateway-port', values['gateway-port']]
  const upstreams = await startUpstreams(folder)
  nodes.push(await startNode([...ports, '--config', upstreams.config, ...argumentsOf(folder, REGIONS[0])]))
  const [first] = nodes
  const apiKey = first?.firstKey
  if (first === undefined || apiKey === undefined) {
    throw new ToolError(
      'DEMO_FAILED',
      'The database has API keys already. Set DATABASE_URL to an empty one, or to none.',
    )
  }
  await putDemoRules(first.url, apiKey)
  if (process.env['REDIS_URL'] !== undefined && process.env['DATABASE_URL'] !== undefined) {
    nodes.push(await startNode(['--port', '0', ...argumentsOf(folder, REGIONS[1])]))
  }
  const gatewayUrl = `http://localhost:${values['gateway-port']}`
  const urls = nodes.map(({ url }) => url)
  const traffic = startTraffic({ urls, gatewayUrl, factor: Number(values.factor) })
  const link = await openSignInLink({ url: first.url, apiKey })
  stopWith(nodes, () => {
    traffic.stop()
    link.close()
    upstreams.close()
  })
  console.log(`The demo is running: ${nodes.length === 1 ? 'one node' : `${nodes.length} nodes`} with generated traffic.

  Open   ${link.url}
         signs this browser in, once; then the dashboard is at ${first.url}/

  Key    ${apiKey}
         for the sign-in page and the admin API, until the demo ends

  Calls  ${gatewayUrl}/ is the gateway: it limits what you send there by the same rules

Try: open Rules, edit /api/v1/reviews, set its limit to 1, publish, and watch the denials on the Overview.

Ctrl-C ends the demo and removes its data.`)
})

// A node that was started before something failed would keep this process, and itself, running.
if (process.exitCode !== undefined) process.exit()

function argumentsOf(folder: string, region: string): string[] {
  const shared = ['--data-dir', join(folder, region), '--region', region, '--drain-ms', '0']
  return [...shared, '--log-level', 'error']
}

/** Ends all when the terminal asks for it, or when a node ends. */
function stopWith(nodes: readonly DemoNode[], stopOwn: () => void): void {
  const stop = (): void => {
    stopOwn()
    for (const { process: child } of nodes) child.kill('SIGTERM')
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  for (const { process: child } of nodes) child.once('exit', stop)
}
