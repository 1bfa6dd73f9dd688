import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { EXIT_CODES } from '../exit-code.ts'
import { CHECK_FLAGS, checkOf } from '../parsing/caller-flags.ts'
import { toggle } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { answerText, decorateAnswer } from './answer-text.ts'

/** Checks a call. */
export const checkCommand: Command = command({
  name: 'check',
  summary: 'Check a call against the limits',
  description:
    'Applies all rules that match the call, and consumes its tokens when all of them allow it. Exits with 0 when it is allowed and with 3 when it is denied. With --json: the answer of the check API.',
  args: { resource: needed('What is called: a path, a name, or *.') },
  flags: { ...CHECK_FLAGS, peek: toggle('Show what a check would answer, and consume nothing.') },
  examples: ['check /api/v1/data --user user-123', 'check /login --ip 192.0.2.7 --peek'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const request = checkOf(args.resource, flags)
    const answer = await (flags.peek ? client.peek(request) : client.check(request))
    return {
      value: answer,
      text: answerText(answer),
      decorate: decorateAnswer,
      exitCode: answer.allowed ? EXIT_CODES.ok : EXIT_CODES.denied,
    }
  },
})
