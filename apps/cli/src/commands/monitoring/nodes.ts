import type { NodeStatus } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { command } from '../../command-line/command.ts'
import { durationText, table } from '../../output/text.ts'

const nodesListCommand: Command = command({
  name: 'nodes list',
  summary: 'List nodes',
  description:
    'Every node of the deployment: rules, traffic, store, when it was last seen. A node that ended without ' +
    'saying so is lost for a minute, then gone. With --json: at, isShared, nodes, and problem if other ' +
    'nodes cannot be read.',
  args: {},
  flags: {},
  examples: ['nodes list'],
  asksService: true,
  run: async (_, { client }) => {
    const value = await client.call('nodes')
    const titles = ['node', 'state', 'region', 'rules', 'lag', 'checks/s', 'denied/s', 'store', 'p99', 'up', 'version']
    const text = table(titles, value.nodes.map(nodeCells))
    return { value, text: value.problem === undefined ? text : `${text}\n${value.problem}` }
  },
})

function nodeCells(node: NodeStatus): readonly string[] {
  const { configVersion, configLagMs, storeP99Ms, breaker } = node
  return [
    node.isSelf ? `${node.name} (asked)` : node.name,
    node.isLost ? 'lost' : 'running',
    node.region ?? '-',
    configVersion === 0 ? 'none' : `version ${configVersion}`,
    durationText(configLagMs),
    String(node.checksPerSecond),
    String(node.denialsPerSecond),
    breaker === 'closed' ? node.store : `${node.store}, breaker ${breaker}`,
    storeP99Ms === null ? '-' : `${storeP99Ms} ms`,
    durationText(node.uptimeMs),
    node.version,
  ]
}

export const nodeCommands: readonly Command[] = [nodesListCommand]
