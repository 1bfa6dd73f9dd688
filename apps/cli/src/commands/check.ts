import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { EXIT_CODES } from '../exit-code.ts'
import { CHECK_FLAGS, checkOf } from '../parsing/caller-flags.ts'
import { toggle } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { answerText } from './answer-text.ts'

/** Asks whether a call may go on. */
export const checkCommand: Command = command({
  name: 'check',
  summary: 'Ask whether a call may go on',
  description:
    'Decides all rules that hold for the call, and takes its tokens when all allow it. Ends with 0 when it may go on and with 3 when a limit refuses it. With --json the answer is that of the check API.',
  args: { resource: needed('What is called: a path, a name, or *.') },
  flags: { ...CHECK_FLAGS, peek: toggle('Ask what would be answered, and take nothing.') },
  examples: ['check /api/v1/data --user user-123', 'check /login --ip 192.0.2.7 --peek'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const request = checkOf(args.resource, flags)
    const answer = await (flags.peek ? client.peek(request) : client.check(request))
    return { value: answer, text: answerText(answer), exitCode: answer.allowed ? EXIT_CODES.ok : EXIT_CODES.denied }
  },
})
