import { isClientError } from '@sluice/client'
import type { LiveSample, ReadinessReason, TopAnswer } from '@sluice/contract'
import type { Command, CommandContext } from '../../command-line/command.ts'
import { command, flag } from '../../command-line/command.ts'
import { usageError } from '../../output/cli-error.ts'
import { ENTER_SCREEN, LEAVE_SCREEN, sampleFrame, sampleLine } from '../../output/live-view.ts'

/** Samples between two requests for the most denied callers. */
const SAMPLES_PER_TOP = 5

export const topCommand: Command = command({
  name: 'top',
  summary: 'Show live traffic',
  description:
    'Shows checks, denials, store latency, resources, the most denied callers, and why the service is degraded, ' +
    'once per second until interrupted. Prints one line per second if the output is not a terminal. With ' +
    '--json: one sample of the live stream per line.',
  args: {},
  flags: {
    count: flag('whole', '<samples>', 'Stop after this many samples, one per second. Default: until interrupted.'),
  },
  examples: ['top', 'top --count 10 --json'],
  asksService: true,
  isLive: true,
  run: async ({ flags: { count = Number.POSITIVE_INFINITY } }, context) => {
    if (count < 1) throw usageError(`--count got ${count}; expected 1 or more.`)
    const show = context.terminal.isTty && !context.isJson ? screen(context) : lines(context)
    try {
      await follow(context, count, show)
    } finally {
      show.end()
    }
    return { value: undefined, text: '' }
  },
})

interface Show {
  begin(): void
  sample(sample: LiveSample): Promise<void> | void
  end(): void
}

async function follow({ client, url, signal, progress }: CommandContext, count: number, show: Show): Promise<void> {
  let seen = 0
  progress.start(`asking ${url}`)
  try {
    for await (const sample of client.stream('live', { signal })) {
      progress.stop()
      if (seen === 0) show.begin()
      await show.sample(sample)
      seen++
      if (seen >= count) return
    }
  } catch (error) {
    // An interrupt is the normal end.
    if (!signal.aborted) throw error
  } finally {
    progress.stop()
  }
}

function lines(context: CommandContext): Show {
  const { terminal, isJson } = context
  return {
    begin: () => undefined,
    sample: async (sample) => {
      terminal.print(isJson ? JSON.stringify(sample) : sampleLine(sample, await reasonsOf(context)))
    },
    end: () => undefined,
  }
}

/** Why the service is degraded, whether it is ready or not. */
async function reasonsOf({ client, signal }: CommandContext): Promise<readonly ReadinessReason[]> {
  try {
    return (await client.call('readyz', { signal })).reasons
  } catch (error) {
    if (!isClientError(error, 'SLUICE_HTTP_NOT_READY')) throw error
    return error.reasons
  }
}

function screen(context: CommandContext): Show {
  const { client, terminal, url, signal } = context
  let top: TopAnswer | undefined
  let seen = 0
  let isOn = false
  return {
    begin: () => {
      isOn = true
      terminal.draw(ENTER_SCREEN)
    },
    sample: async (sample) => {
      if (seen++ % SAMPLES_PER_TOP === 0) top = await client.call('top', { parameters: { limit: 5 }, signal })
      const { columns, rows, paint } = terminal
      const reasons = await reasonsOf(context)
      terminal.draw(sampleFrame(sample, { columns, rows, url, top, reasons, paint }))
    },
    end: () => {
      if (isOn) terminal.draw(LEAVE_SCREEN)
    },
  }
}
