import { describe, expect, it } from 'vitest'
import type { Step } from './run-steps.ts'
import { runSteps } from './run-steps.ts'

function fakeHost() {
  const lines: string[] = []
  let ticks = 0
  const nowMs = () => {
    ticks += 1
    return ticks * 1500
  }
  return { lines, host: { print: (line: string) => void lines.push(line), nowMs } }
}

function step(title: string, code: number, ran: string[]): Step {
  return {
    title,
    command: `npx ${title}`,
    run: () => {
      ran.push(title)
      return Promise.resolve(code)
    },
  }
}

describe('runSteps', () => {
  it('runs every step in order and says what passed and how long it took', async () => {
    const { lines, host } = fakeHost()
    const ran: string[] = []
    await runSteps([step('lint', 0, ran), step('types', 0, ran)], host)
    expect(ran).toEqual(['lint', 'types'])
    expect(lines).toEqual([
      '\n[1/2] lint: npx lint',
      '    lint passed in 1.5 s',
      '\n[2/2] types: npx types',
      '    types passed in 1.5 s',
    ])
  })

  it('stops at the first failure and names the command that repeats it', async () => {
    const { host } = fakeHost()
    const ran: string[] = []
    const run = runSteps([step('lint', 0, ran), step('types', 2, ran), step('tests', 0, ran)], host)
    await expect(run).rejects.toMatchObject({
      code: 'STEP_FAILED',
      message: expect.stringMatching(/^types failed with code 2 .*To repeat it alone: npx types$/),
    })
    expect(ran).toEqual(['lint', 'types'])
  })
})
