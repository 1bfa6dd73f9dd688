import type { GatewayAnswer, GatewayInstance, GatewayRoute } from '@sluice/contract'
import type { Settings } from '@sluice/service/settings'
import type { Command } from '../command-line/command.ts'
import { command, passThroughCommand } from '../command-line/command.ts'
import { usageError } from '../output/cli-error.ts'
import { facts, instantText, table } from '../output/text.ts'
import { runService } from '../programs/serve.ts'

const EXAMPLE = `routes:
  - { name: all, match: { path: "/*" }, upstream: app }
upstreams:
  app: { instances: [{ url: "http://127.0.0.1:3000" }] }`

const gatewayCommand: Command = passThroughCommand({
  name: 'gateway',
  summary: 'Start the gateway',
  description:
    'Runs the service with its gateway in the foreground until it is stopped. The file has routes and upstreams ' +
    'besides rules; changes of the file take effect without a restart. Flags and --json are those of "sluice serve".',
  examples: ['gateway --config sluice.yaml', 'gateway --config sluice.yaml --gateway-port 80 --threads auto'],
  run: async (args, context) => {
    const problem = await routesProblem(
      args.filter((arg) => arg !== '--json'),
      context.environment.variables,
    )
    if (problem !== undefined) throw usageError(problem)
    return await runService(args, context)
  },
})

/** Why there is nothing for a gateway to do. Undefined if there is, or if the service will say what is wrong. */
async function routesProblem(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  // Loaded on demand: most commands do not need the code of the service.
  const { readSettings } = await import('@sluice/service/settings')
  const own = args.filter((arg) => arg !== '--help')
  let settings: Settings
  let isOn: boolean
  try {
    isOn = readSettings({ args: own, environment }).gateway !== undefined
    // The last flag counts: whether there are routes does not depend on the port.
    settings = readSettings({ args: [...own, '--gateway-port', '0'], environment })
  } catch {
    return undefined
  }
  const { gateway, rulesFile } = settings
  if (own.length < args.length) return undefined
  if (gateway?.hasRoutes === true) {
    return isOn ? undefined : 'The gateway is switched off: its port is "off". Leave --gateway-port out.'
  }
  const what = rulesFile === undefined ? 'No file with routes is given.' : `${rulesFile} has no "routes".`
  const demo = '"sluice serve --all-listeners" starts a gateway with a demo upstream.'
  return `${what} Write them into a file, then start "sluice gateway --config <file>":\n\n${EXAMPLE}\n\n${demo}`
}

const gatewayStatusCommand: Command = command({
  name: 'gateway status',
  summary: 'Show routes and upstreams',
  description:
    'How the gateway of a node stands, over all its threads: its routes, and the instances of its upstreams with ' +
    'health, circuit breaker and requests in flight.',
  args: {},
  flags: {},
  examples: ['gateway status', 'gateway status --json'],
  asksService: true,
  run: async (_, { client }) => {
    const value = await client.call('gateway')
    return { value, text: statusText(value) }
  },
})

const OFF = 'The gateway is off. Start the service with routes: sluice gateway --config sluice.yaml.'

function statusText(answer: GatewayAnswer): string {
  const { mode, threads, routes, upstreams, waitingFor, keySet, problem } = answer
  if (mode === 'off') return OFF
  const overview = facts([
    ['mode', mode === 'demo' ? 'demo: no routes are configured' : 'routes'],
    ['threads', threads],
    ['waiting for', waitingFor.length === 0 ? undefined : waitingFor.join(', ')],
    ['token keys', keySet && `${keySet.keys}, loaded ${instantText(keySet.loadedAt)}`],
    ['problem', problem ?? keySet?.problem],
  ])
  const routeRows = routes.map(routeRow)
  const instanceRows = upstreams.flatMap(({ name, instances, unresolved }) => [
    ...instances.map((instance) => instanceRow(name, instance)),
    ...unresolved.map((text) => [name, text, 'unresolved', '-', '-', '-', '-', '-']),
  ])
  return [
    overview,
    table(['route', 'hosts', 'path', 'methods', 'auth', 'limits', 'upstream'], routeRows),
    table(['upstream', 'instance', 'health', 'breaker', 'in flight', 'limit', 'requests', 'failures'], instanceRows),
  ].join('\n\n')
}

function routeRow({ name, hosts, path, methods, auth, limited, upstream }: GatewayRoute): readonly string[] {
  return [name, hosts?.join(',') ?? '*', path, methods?.join(',') ?? '*', auth, limited ? 'on' : 'off', upstream]
}

function instanceRow(upstream: string, instance: GatewayInstance): readonly string[] {
  const { instance: url, health, breaker, inFlight, concurrencyLimit, requests, failures } = instance
  const numbers = [inFlight, concurrencyLimit ?? '-', requests, failures]
  return [upstream, url, health, breaker, ...numbers.map(String)]
}

export const gatewayCommands: readonly Command[] = [gatewayCommand, gatewayStatusCommand]
