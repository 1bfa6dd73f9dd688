import type { Command } from './command-line/command.ts'
import { auditCommands } from './commands/access/audit.ts'
import { keyCommands } from './commands/access/keys.ts'
import { sessionCommands } from './commands/access/sessions.ts'
import { blockCommands } from './commands/callers/blocks.ts'
import { memberCommands } from './commands/callers/members.ts'
import { overrideCommands } from './commands/callers/overrides.ts'
import { usageCommands } from './commands/callers/usage.ts'
import { checkCommands } from './commands/check.ts'
import { gatewayCommands } from './commands/gateway.ts'
import { idCommands } from './commands/ids.ts'
import { alertCommands } from './commands/monitoring/alerts.ts'
import { decisionCommands } from './commands/monitoring/decisions.ts'
import { incidentCommands } from './commands/monitoring/incident.ts'
import { nodeCommands } from './commands/monitoring/nodes.ts'
import { topCommand } from './commands/monitoring/top.ts'
import { rulesDeleteCommand, rulesGetCommand, rulesListCommand, rulesValidateCommand } from './commands/rules/rules.ts'
import { rulesPutCommand } from './commands/rules/rules-put.ts'
import { denyListCommands, exemptionCommands, tierCommands } from './commands/rules/tiers-exemptions-deny-list.ts'
import { versionCommands } from './commands/rules/versions.ts'
import { doctorCommand } from './doctor/doctor.ts'
import { harnessCommand } from './programs/harness.ts'
import { serveCommand } from './programs/serve.ts'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  serveCommand,
  ...gatewayCommands,
  ...checkCommands,
  ...usageCommands,
  rulesListCommand,
  rulesGetCommand,
  rulesValidateCommand,
  rulesPutCommand,
  rulesDeleteCommand,
  ...versionCommands,
  ...overrideCommands,
  ...tierCommands,
  ...memberCommands,
  ...exemptionCommands,
  ...denyListCommands,
  ...blockCommands,
  ...incidentCommands,
  ...keyCommands,
  ...sessionCommands,
  ...auditCommands,
  ...alertCommands,
  ...decisionCommands,
  ...nodeCommands,
  topCommand,
  ...idCommands,
  doctorCommand,
  harnessCommand,
]
