import type { Command } from './command.ts'
import { alertsAcknowledgeCommand } from './commands/alerts-acknowledge.ts'
import { alertsDeadLettersCommand } from './commands/alerts-dead-letters.ts'
import { alertsListCommand } from './commands/alerts-list.ts'
import { alertsRetryCommand } from './commands/alerts-retry.ts'
import { alertsSilenceCommand } from './commands/alerts-silence.ts'
import { auditListCommand } from './commands/audit-list.ts'
import { blocksLiftCommand } from './commands/blocks-lift.ts'
import { blocksListCommand } from './commands/blocks-list.ts'
import { blocksPutCommand } from './commands/blocks-put.ts'
import { checkCommand } from './commands/check.ts'
import { denyListDeleteCommand } from './commands/deny-list-delete.ts'
import { denyListListCommand } from './commands/deny-list-list.ts'
import { denyListPutCommand } from './commands/deny-list-put.ts'
import { doctorCommand } from './commands/doctor.ts'
import { exemptionsDeleteCommand } from './commands/exemptions-delete.ts'
import { exemptionsListCommand } from './commands/exemptions-list.ts'
import { exemptionsPutCommand } from './commands/exemptions-put.ts'
import { explainCommand } from './commands/explain.ts'
import { harnessCommand } from './commands/harness.ts'
import { idDecodeCommand } from './commands/id-decode.ts'
import { idNewCommand } from './commands/id-new.ts'
import { incidentEndCommand } from './commands/incident-end.ts'
import { incidentShowCommand } from './commands/incident-show.ts'
import { incidentStartCommand } from './commands/incident-start.ts'
import { keysCreateCommand } from './commands/keys-create.ts'
import { keysListCommand } from './commands/keys-list.ts'
import { keysRevokeCommand } from './commands/keys-revoke.ts'
import { keysRotateCommand } from './commands/keys-rotate.ts'
import { membersDeleteCommand } from './commands/members-delete.ts'
import { membersListCommand } from './commands/members-list.ts'
import { membersPutCommand } from './commands/members-put.ts'
import { overridesDeleteCommand } from './commands/overrides-delete.ts'
import { overridesGetCommand } from './commands/overrides-get.ts'
import { overridesImportCommand } from './commands/overrides-import.ts'
import { overridesListCommand } from './commands/overrides-list.ts'
import { overridesPutCommand } from './commands/overrides-put.ts'
import { resetCommand } from './commands/reset.ts'
import { rulesDeleteCommand } from './commands/rules-delete.ts'
import { rulesDiffCommand } from './commands/rules-diff.ts'
import { rulesGetCommand } from './commands/rules-get.ts'
import { rulesImportCommand } from './commands/rules-import.ts'
import { rulesListCommand } from './commands/rules-list.ts'
import { rulesPutCommand } from './commands/rules-put.ts'
import { rulesRollbackCommand } from './commands/rules-rollback.ts'
import { rulesStageCommand } from './commands/rules-stage.ts'
import { rulesValidateCommand } from './commands/rules-validate.ts'
import { rulesVersionsCommand } from './commands/rules-versions.ts'
import { serveCommand } from './commands/serve.ts'
import { tiersDeleteCommand } from './commands/tiers-delete.ts'
import { tiersListCommand } from './commands/tiers-list.ts'
import { tiersPutCommand } from './commands/tiers-put.ts'
import { topCommand } from './commands/top.ts'
import { usageCommand } from './commands/usage.ts'

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
