import type { Command } from './command-line/command.ts'
import {
  alertsAcknowledgeCommand,
  alertsDeadLettersCommand,
  alertsListCommand,
  alertsRetryCommand,
  alertsSilenceCommand,
} from './commands/alerts.ts'
import { auditListCommand } from './commands/audit.ts'
import { blocksLiftCommand, blocksListCommand, blocksPutCommand } from './commands/blocks.ts'
import { checkCommand, explainCommand } from './commands/check.ts'
import { idDecodeCommand, idNewCommand } from './commands/ids.ts'
import { incidentEndCommand, incidentShowCommand, incidentStartCommand } from './commands/incident.ts'
import { keysCreateCommand, keysListCommand, keysRevokeCommand, keysRotateCommand } from './commands/keys.ts'
import { membersDeleteCommand, membersListCommand, membersPutCommand } from './commands/members.ts'
import {
  overridesDeleteCommand,
  overridesGetCommand,
  overridesImportCommand,
  overridesListCommand,
  overridesPutCommand,
} from './commands/overrides.ts'
import {
  denyListDeleteCommand,
  denyListListCommand,
  denyListPutCommand,
  exemptionsDeleteCommand,
  exemptionsListCommand,
  exemptionsPutCommand,
  tiersDeleteCommand,
  tiersListCommand,
  tiersPutCommand,
} from './commands/rule-set-entries.ts'
import { rulesDeleteCommand, rulesGetCommand, rulesListCommand, rulesValidateCommand } from './commands/rules.ts'
import { rulesPutCommand } from './commands/rules-put.ts'
import { topCommand } from './commands/top.ts'
import { resetCommand, usageCommand } from './commands/usage.ts'
import {
  rulesDiffCommand,
  rulesImportCommand,
  rulesRollbackCommand,
  rulesStageCommand,
  rulesVersionsCommand,
} from './commands/versions.ts'
import { doctorCommand } from './doctor/doctor.ts'
import { harnessCommand } from './programs/harness.ts'
import { serveCommand } from './programs/serve.ts'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  serveCommand,
  checkCommand,
  explainCommand,
  usageCommand,
  resetCommand,
  rulesListCommand,
  rulesGetCommand,
  rulesValidateCommand,
  rulesPutCommand,
  rulesDeleteCommand,
  rulesDiffCommand,
  rulesImportCommand,
  rulesVersionsCommand,
  rulesStageCommand,
  rulesRollbackCommand,
  overridesListCommand,
  overridesGetCommand,
  overridesPutCommand,
  overridesDeleteCommand,
  overridesImportCommand,
  tiersListCommand,
  tiersPutCommand,
  tiersDeleteCommand,
  membersListCommand,
  membersPutCommand,
  membersDeleteCommand,
  exemptionsListCommand,
  exemptionsPutCommand,
  exemptionsDeleteCommand,
  denyListListCommand,
  denyListPutCommand,
  denyListDeleteCommand,
  blocksListCommand,
  blocksPutCommand,
  blocksLiftCommand,
  incidentShowCommand,
  incidentStartCommand,
  incidentEndCommand,
  keysListCommand,
  keysCreateCommand,
  keysRotateCommand,
  keysRevokeCommand,
  auditListCommand,
  alertsListCommand,
  alertsAcknowledgeCommand,
  alertsSilenceCommand,
  alertsDeadLettersCommand,
  alertsRetryCommand,
  topCommand,
  idNewCommand,
  idDecodeCommand,
  doctorCommand,
  harnessCommand,
]
