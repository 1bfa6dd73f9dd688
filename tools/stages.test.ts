import { describe, expect, it } from 'vitest'
import type { Stage } from './stages.ts'
import { runStages } from './stages.ts'

function fakeHost() {
  const lines: string[] = []
  let ticks = 0
  const nowMs = () => {
    ticks += 1
    return ticks * 1500
  }
  return { lines, host: { print: (line: string) => void lines.push(line), nowMs } }
}

function stage(title: string, code: number, ran: string[]): Stage {
  return {
    title,
    command: `npx ${title}`,
    run: () => {
      ran.push(title)
      return Promise.resolve(code)
    },
  }
}

describe('runStages', () => {
  it('runs every stage in order and says what passed and how long it took', async () => {
    const { lines, host } = fakeHost()
    const ran: string[] = []
    await runStages([stage('lint', 0, ran), stage('types', 0, ran)], host)
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
    const run = runStages([stage('lint', 0, ran), stage('types', 2, ran), stage('tests', 0, ran)], host)
    await expect(run).rejects.toMatchObject({
      code: 'STAGE_FAILED',
      message: expect.stringMatching(/^types failed with code 2 .*To repeat it alone: npx types$/),
    })
    expect(ran).toEqual(['lint', 'types'])
  })
})
