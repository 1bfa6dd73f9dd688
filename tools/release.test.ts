import { describe, expect, it } from 'vitest'
import type { ReleaseState } from './release-checks.ts'
import { changelogVersion, releaseProblems, withVersion } from './release-checks.ts'

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
    ['a missing repository', { repository: undefined }, 'package.json has no repository'],
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
