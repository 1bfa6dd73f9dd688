import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cliRunner } from '../../cli.test.support.ts'

const SERVICE = join(import.meta.dirname, '../../../../service/src/main.ts')
const RULE = { resource: '/a', dimension: 'user', limit: 1, window: '1m' }

/** Files that the service does not start with, and a part of what it says. */
const REJECTED: readonly (readonly [name: string, content: unknown, found: string])[] = [
  [
    'rules that cannot be used',
    {
      rules: [
        { ...RULE, limit: 'ten' },
        { ...RULE, window: 'soon' },
      ],
    },
    '/rules/1/window',
  ],
  ['a cost function', { rules: [{ ...RULE, cost: { function: 'tokens' } }] }, '/rules/0/cost/function'],
  ['two rules of one meaning', { rules: [RULE, RULE] }, '/rules/1'],
  [
    'an unknown tier',
    { rules: [RULE], members: [{ dimension: 'user', entity: 'u', tier: 'gold' }] },
    '/members/0/tier',
  ],
  ['an unknown setting', { rules: [RULE], service: { prot: 1 } }, 'service.prot'],
  ['settings that contradict each other', { rules: [RULE], service: { leases: true } }, '--leases'],
  [
    'a rule that does not fit',
    { rules: [{ ...RULE, algorithm: 'sliding-window-log', limit: 5000 }], service: { threads: 2, stateSize: 64 } },
    '--state-size',
  ],
  ['something that is no YAML', 'rules: [', 'YAML'],
  ['a list', '- 1', 'a list'],
]

function fileWith(content: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-validate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'sluice.yaml')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
  return file
}

const run = cliRunner({ readText: (path: string) => readFile(path, 'utf8') } as object)

/** What the service prints when it does not start with a file. */
async function serviceError(file: string): Promise<{ readonly code: unknown; readonly problems: readonly string[] }> {
  const args = ['--conditions=source', SERVICE, '--config', file, '--port', '0', '--data-dir', join(file, '../data')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  return { code, problems: said.split('\n').filter((line) => line.startsWith('  ')) }
}

describe('rules validate', () => {
  it.each(REJECTED)('says of %s what the service says', async (_, content, found) => {
    const file = fileWith(content)
    const outcome = await run('rules', 'validate', file)
    expect(outcome.code).toBe(2)
    expect(outcome.out).toBe('')
    expect(outcome.err).toMatch(/^sluice: SLUICE_CLI_INVALID_FILE: .*sluice\.yaml has \d+ problems?; /)
    expect(outcome.err).toContain(found)
    const told = outcome.err.split('\n').filter((line) => line.startsWith('  '))
    const { code, problems } = await serviceError(file)
    expect(code).toBe(1)
    expect(told.map((line) => line.replace('/service: ', ''))).toEqual(problems)
  })

  it('accepts what the service starts with, and says what is in it', async () => {
    const file = fileWith({ rules: [RULE, { ...RULE, resource: '/b' }], service: { threads: 2 } })
    expect((await run('rules', 'validate', file)).out).toBe(`${file} is valid: 2 rules.\n`)
    expect((await run('rules', 'validate', file, '--json')).json()).toEqual({ file, rules: 2, warnings: [] })
    const settings = fileWith({ service: { port: 8081 } })
    expect((await run('rules', 'validate', settings)).out).toBe(`${settings} is valid: settings only, no rules.\n`)
  })

  it('takes nothing from the environment: a file is valid on every machine or on none', async () => {
    const file = fileWith({ rules: [RULE] })
    expect((await cliRunner({ env: { PORT: 'http' }, files: { [file]: '' } })('rules', 'validate', file)).code).toBe(0)
  })

  it('needs a file that can be read', async () => {
    expect(await run('rules', 'validate', '-')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Standard input'),
    })
    const missing = await cliRunner()('rules', 'validate', 'nowhere.yaml')
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('nowhere.yaml: it cannot be read') })
  })
})

describe('doctor --config', () => {
  it('fails on a rules file that the service rejects', async () => {
    const bad = fileWith({
      rules: [
        { ...RULE, limit: 'ten' },
        { ...RULE, window: 'soon' },
      ],
    })
    const data = join(bad, '../data')
    const outcome = await run('doctor', '--config', bad, '--port', '0', '--data-dir', data)
    expect(outcome.code).toBe(1)
    expect(outcome.out).toMatch(/^failed +rules +\S+sluice\.yaml: \/rules\/0\/limit \(line \d+\): .*; and \d more$/m)
    expect(outcome.out).toContain(`sluice rules validate ${bad}`)
    const good = await run('doctor', '--config', fileWith({ rules: [RULE] }), '--port', '0', '--data-dir', data)
    expect(good.out).toMatch(/^ok +rules +\S+sluice\.yaml has 1 rule$/m)
  })
})

describe('a dimension that is not declared', () => {
  it('is a warning with the nearest known one, and the file is valid', async () => {
    const file = fileWith({ rules: [{ ...RULE, dimension: 'usr' }] })
    const warning =
      'dimension "usr" at /rules/0/dimension is neither built in nor listed under "dimensions"; did you mean "user"?'
    const { code, out } = await run('rules', 'validate', file)
    expect({ code, out }).toEqual({ code: 0, out: `${file} is valid: 1 rule.\nWarning: ${warning}\n` })
    const json = await run('rules', 'validate', file, '--json')
    expect(json.json()).toEqual({ file, rules: 1, warnings: [warning] })
    const doctor = await run('doctor', '--config', file, '--port', '0', '--data-dir', join(file, '../data'))
    expect(doctor.out).toContain(`${file}: ${warning}`)
  })

  it('is no warning when it is declared', async () => {
    const file = fileWith({ dimensions: ['usr'], rules: [{ ...RULE, dimension: 'usr' }] })
    const outcome = await run('rules', 'validate', file, '--json')
    expect(outcome.json()).toEqual({ file, rules: 1, warnings: [] })
  })
})
