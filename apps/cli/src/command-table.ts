import type { Command } from './command-line/command.ts'
import { alertCommands } from './commands/alerts.ts'
import { auditCommands } from './commands/audit.ts'
import { blockCommands } from './commands/blocks.ts'
import { checkCommands } from './commands/check.ts'
import { gatewayCommands } from './commands/gateway.ts'
import { idCommands } from './commands/ids.ts'
import { incidentCommands } from './commands/incident.ts'
import { keyCommands } from './commands/keys.ts'
import { memberCommands } from './commands/members.ts'
import { overrideCommands } from './commands/overrides.ts'
import { denyListCommands, exemptionCommands, tierCommands } from './commands/rule-set-entries.ts'
import { rulesDeleteCommand, rulesGetCommand, rulesListCommand, rulesValidateCommand } from './commands/rules.ts'
import { rulesPutCommand } from './commands/rules-put.ts'
import { topCommand } from './commands/top.ts'
import { usageCommands } from './commands/usage.ts'
import { versionCommands } from './commands/versions.ts'
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
  ...auditCommands,
  ...alertCommands,
  topCommand,
  ...idCommands,
  doctorCommand,
  harnessCommand,
]
