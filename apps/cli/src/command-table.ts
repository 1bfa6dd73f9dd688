import type { Command } from './command-line/command.ts'
import { alertCommands } from './commands/alerts.ts'
import { auditCommands } from './commands/audit.ts'
import { blockCommands } from './commands/blocks.ts'
import { checkCommands } from './commands/check.ts'
import { decisionCommands } from './commands/decisions.ts'
import { gatewayCommands } from './commands/gateway.ts'
import { idCommands } from './commands/ids.ts'
import { incidentCommands } from './commands/incident.ts'
import { keyCommands } from './commands/keys.ts'
import { memberCommands } from './commands/members.ts'
import { nodeCommands } from './commands/nodes.ts'
import { overrideCommands } from './commands/overrides.ts'
import { denyListCommands, exemptionCommands, tierCommands } from './commands/rules/rule-set-entries.ts'
import { rulesDeleteCommand, rulesGetCommand, rulesListCommand, rulesValidateCommand } from './commands/rules/rules.ts'
import { rulesPutCommand } from './commands/rules/rules-put.ts'
import { versionCommands } from './commands/rules/versions.ts'
import { sessionCommands } from './commands/sessions.ts'
import { topCommand } from './commands/top.ts'
import { usageCommands } from './commands/usage.ts'
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
