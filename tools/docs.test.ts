import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { brokenLinks, headingAnchors, relativeLinks } from './markdown-links.ts'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

const files = repositoryFiles(repositoryRoot)

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

/** Lines of the files that match, as `path:line text`. */
function linesThatMatch(paths: readonly string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  )
}

describe('the documents', () => {
  const documents = files.filter((path) => path.endsWith('.md'))
  const targets = { exists: (path: string) => existsSync(join(repositoryRoot, path)), read }

  it.each(documents.map((path) => [path]))('%s links to files and headings that exist', (path) => {
    expect(brokenLinks(path, targets)).toEqual([])
  })
})

describe('the repository', () => {
  const texts = files.filter((path) => !/\.(?:png|jpg|gif|ico|woff2)$/.test(path))

  // The patterns are put together here, so that this file does not match them.
  it('makes sense without the machine it was written on', () => {
    expect(linesThatMatch(texts, new RegExp(['\\.\\./sha', 'red\\b|(?<![\\w.])/wo', 'rk/'].join('')))).toEqual([])
  })

  it('has no reminders in its sources', () => {
    const sources = texts.filter((path) => /\.(?:[cm]?[jt]sx?|grit|lua|sql|sh)$/.test(path))
    expect(linesThatMatch(sources, new RegExp(['\\b(?:TO', 'DO|FIX', 'ME|XX', 'X|HA', 'CK)\\b'].join('')))).toEqual([])
  })
})

describe('relativeLinks', () => {
  it('finds links and link definitions, with their lines', () => {
    expect(relativeLinks('[a](docs/a.md) and [b](b.md "title")\n\n[c]: ./c.md#part\n![d](p.png)')).toEqual([
      { target: 'docs/a.md', line: 1 },
      { target: 'b.md', line: 1 },
      { target: './c.md#part', line: 3 },
      { target: 'p.png', line: 4 },
    ])
  })

  it('leaves out the web and code', () => {
    const text = '[a](https://example.com) [b](mailto:a@b.c) `[c](c.md)`\n```md\n[d](d.md)\n```\n'
    expect(relativeLinks(text)).toEqual([])
  })
})

describe('headingAnchors', () => {
  it('names headings as GitHub does', () => {
    const text = '# Why `check()`, not wait?\n## Life of a [check](x.md)\n## Same\n## Same\n```\n# not a heading\n```\n'
    expect([...headingAnchors(text)]).toEqual(['why-check-not-wait', 'life-of-a-check', 'same', 'same-1'])
  })
})

describe('brokenLinks', () => {
  const texts: Record<string, string> = {
    'README.md':
      '# Start\n[ok](docs/a.md#part-one) [own](#start) [folder](docs)\n[gone](docs/b.md) [no](docs/a.md#none)',
    'docs/a.md': '# Part one\n[up](../README.md) [out](../../other.md)',
  }
  const targets = { exists: (path: string) => path in texts || path === 'docs', read: (path: string) => texts[path]! }

  it('names the link and what is wrong with it', () => {
    expect(brokenLinks('README.md', targets)).toEqual([
      'README.md:3 docs/b.md: docs/b.md does not exist',
      "README.md:3 docs/a.md#none: docs/a.md has no heading '#none'",
    ])
    expect(brokenLinks('docs/a.md', targets)).toEqual(['docs/a.md:2 ../../other.md: leads out of the repository'])
  })
})
