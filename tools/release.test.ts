import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ReleaseState } from './release-checks.ts'
import { changelogVersion, releaseProblems, withVersion } from './release-checks.ts'
import { runRelease } from './release-run.ts'
import { repositoryUrl } from './repository-url.ts'

const READY: ReleaseState = {
  changelog:
    '# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- a\n\n## [1.1.0] - 2026-11-01\n',
  upgradeNotes: '# Upgrade\n\n## Notes\n\n### 1.2.0\n\nNothing to do.\n',
  versions: { 'package.json': '1.2.0', 'packages/core/package.json': '1.2.0' },
  changedFiles: '',
  tags: ['v1.1.0', 'v1.0.0', 'docs-2'],
  repository: 'git+https://git.example/sluice.git',
}

const problemsWith = (change: Partial<ReleaseState>): string[] => releaseProblems({ ...READY, ...change })

describe('releaseProblems', () => {
  it('finds none where everything is ready', () => {
    expect(releaseProblems(READY)).toEqual([])
    expect(problemsWith({ changelog: READY.changelog.replace('## [Unreleased]\n\n', '') })).toEqual([])
  })

  it.each<[string, Partial<ReleaseState>, string]>([
    ['files that are not committed', { changedFiles: ' M a.ts\n?? b.ts\n' }, '2 files differ from the last commit'],
    ['a missing repository', { repository: undefined }, 'or pass --repository https://<host>/<owner>/<name>, or'],
    ['a changelog without a version', { changelog: '## [Unreleased]\n\n- a\n' }, 'CHANGELOG.md has no heading'],
    ['a version without a date', { changelog: '## [1.2.0]\n\n- a\n' }, 'CHANGELOG.md has no heading'],
    [
      'changes that are not released',
      { changelog: READY.changelog.replace('[Unreleased]\n', '[Unreleased]\n\n### Added\n\n- b\n') },
      'has changes under [Unreleased]',
    ],
    [
      'another version',
      { versions: { 'package.json': '1.1.0' } },
      'CHANGELOG.md says 1.2.0, but these differ: package.json (1.1.0)',
    ],
    ['a tag that is taken', { tags: ['v1.2.0'] }, 'The tag v1.2.0 exists'],
    ['a higher tag', { tags: ['v1.10.0'] }, 'The tag v1.10.0 is higher than 1.2.0'],
    ['missing upgrade notes', { upgradeNotes: '# Upgrade\n' }, 'has no section "### 1.2.0"'],
  ])('finds %s', (_, change, problem) => {
    expect(problemsWith(change)).toEqual([expect.stringContaining(problem)])
  })
})

describe('changelogVersion', () => {
  it('is the newest version with a date', () => {
    expect(changelogVersion(READY.changelog)).toBe('1.2.0')
    expect(changelogVersion('# Changelog\n\n## [Unreleased]\n')).toBeUndefined()
  })
})

describe('withVersion', () => {
  it('replaces the version and those of packages of the workspace, and no other', () => {
    const text = (version: string): string =>
      `{\n  "name": "@sluice/a",\n  "version": "${version}",\n  "dependencies": {\n    "@sluice/b": "${version}",\n` +
      '    "pg": "0.1.0"\n  }\n}\n'
    expect(withVersion(text('0.1.0'), '0.2.0')).toBe(text('0.2.0'))
  })
})

describe('repositoryUrl', () => {
  const sources = { args: [], manifest: undefined, environment: {} }
  const ci = { GITHUB_SERVER_URL: 'https://git.example', GITHUB_REPOSITORY: 'owner/name' }

  it.each<[string, Partial<Parameters<typeof repositoryUrl>[0]>, string | undefined]>([
    ['nothing', {}, undefined],
    ['the environment of CI', { environment: ci }, 'git+https://git.example/owner/name.git'],
    ['half of that', { environment: { GITHUB_REPOSITORY: 'owner/name' } }, undefined],
    [
      'package.json first',
      { manifest: { url: 'https://a.example/b/c' }, environment: ci },
      'git+https://a.example/b/c.git',
    ],
    ['package.json with a string', { manifest: 'git+https://a.example/b/c.git' }, 'git+https://a.example/b/c.git'],
    [
      'the argument before both',
      { args: ['--dry-run', '--repository', 'https://d.example:8443/e/f/'], manifest: 'https://a.example/b/c' },
      'git+https://d.example:8443/e/f.git',
    ],
  ])('takes it from %s', (_, found, url) => {
    expect(repositoryUrl({ ...sources, ...found })).toBe(url)
  })

  it.each(['http://a.example/b/c', 'owner/name', 'https://a.example', 'https://user:secret@a.example/b/c', ''])(
    'rejects %j, and says what to write',
    (url) => {
      expect(() => repositoryUrl({ ...sources, args: ['--repository', url] })).toThrow(
        `received ${JSON.stringify(url)}; expected https://<host>/<owner>/<name>. Add "repository"`,
      )
    },
  )
})

/** A checkout with one commit, and a release of it whose steps only say that they ran. */
function checkout(files: Readonly<Record<string, string>> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const manifest = '{\n  "name": "a",\n  "version": "1.2.0"\n}\n'
  const all = {
    'CHANGELOG.md': READY.changelog,
    'docs/guides/operate/upgrade.md': READY.upgradeNotes,
    'package.json': manifest,
    'packages/core/package.json': manifest,
    ...files,
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args], { cwd: root, encoding: 'utf8' })
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '--message', 'All')
  const printed: string[] = []
  const run = (args: readonly string[], environment = {}): Promise<void> =>
    runRelease({
      args,
      environment,
      root,
      steps: (packed, repository) => [
        {
          title: 'package',
          command: 'pack',
          run: () => Promise.resolve(printed.push(`packs ${packed} of ${repository}`) > 0 ? 0 : 1),
        },
      ],
      host: { print: (line) => printed.push(line), nowMs: () => 0 },
    })
  return { root, git, run, printed }
}

const REPOSITORY = ['--repository', 'https://git.example/owner/name']

describe('npm run release', () => {
  it('passes as a dry run with a repository, and changes nothing', async () => {
    const { run, printed, git } = checkout()
    await run(['--dry-run', ...REPOSITORY])
    expect(printed).toContain('packs dist/sluice-1.2.0.tgz of git+https://git.example/owner/name.git')
    expect(printed.join('\n')).toContain('A release would create the tag v1.2.0')
    expect(printed.filter((line) => line.startsWith('problem'))).toEqual([])
    expect(git('tag')).toBe('')
  })

  it('creates the tag, once', async () => {
    const { run, printed, git } = checkout()
    const environment = { GITHUB_SERVER_URL: 'https://git.example', GITHUB_REPOSITORY: 'owner/name' }
    await run([], environment)
    expect(git('tag')).toBe('v1.2.0\n')
    await expect(run([], environment)).rejects.toMatchObject({ code: 'RELEASE_NOT_READY' })
    expect(printed).toContain('problem: The tag v1.2.0 exists. Release a higher version.')
  })

  it.each<[string, Readonly<Record<string, string>>, readonly string[], string]>([
    ['no repository', {}, [], 'problem: The repository is not known, which npm compares for provenance. Add'],
    ['no version', { 'CHANGELOG.md': '## [Unreleased]\n\n- a\n' }, REPOSITORY, 'problem: CHANGELOG.md has no heading'],
    ['another version', { 'apps/b/package.json': '{ "version": "1" }' }, REPOSITORY, 'differ: apps/b/package.json (1)'],
    ['no notes', { 'docs/guides/operate/upgrade.md': '' }, REPOSITORY, 'has no section "### 1.2.0"'],
  ])('fails with %s, after it tried the rest', async (_, files, args, problem) => {
    const { run, printed } = checkout(files)
    await expect(run(['--dry-run', ...args])).rejects.toMatchObject({ code: 'RELEASE_NOT_READY' })
    expect(printed.join('\n')).toContain(problem)
    expect(printed.join('\n')).toContain('packs dist/sluice-1.2.0.tgz')
  })

  it('fails with files that are not committed', async () => {
    const { root, run, printed } = checkout()
    writeFileSync(join(root, 'new.txt'), '')
    await expect(run(REPOSITORY)).rejects.toMatchObject({ code: 'RELEASE_NOT_READY' })
    expect(printed).toEqual(['problem: 1 files differ from the last commit. Commit or remove them.'])
  })

  it('rejects other arguments', async () => {
    await expect(checkout().run(['--dryrun'])).rejects.toThrow('Received --dryrun; expected --dry-run or')
  })
})
