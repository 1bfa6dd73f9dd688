import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { llmsTxtFile, renderLlmsTxt } from './llms-txt.ts'
import { relativeLinks } from './markdown-links.ts'
import { stagedDocuments } from './staged-documents.ts'
import { repositoryRoot } from './workspace.ts'

const text = readFileSync(join(repositoryRoot, llmsTxtFile), 'utf8')

describe('llms.txt', () => {
  it('says what the documents say; after a change run npm run api-docs', () => {
    expect(text).toBe(renderLlmsTxt(repositoryRoot))
  })

  it('has the parts that llmstxt.org names: title, summary, lists of links', () => {
    expect(text).toMatch(/^# Sluice\n\n> Rate limiting .+\n/)
    const lists = text.split(/^## /m).slice(1)
    const others = lists.flatMap((list) => list.split('\n').slice(1)).filter((line) => line !== '')
    expect(others.filter((line) => !/^- \[.+\]\(.+\)(?:: .+\.)?$/.test(line))).toEqual([])
    expect(lists.length).toBeGreaterThan(5)
  })

  it('has a program that the README has, whose output a test compares', () => {
    const [program] = /^```ts\n[\s\S]*?^```$/m.exec(text) ?? []
    expect(readFileSync(join(repositoryRoot, 'README.md'), 'utf8')).toContain(program)
  })

  it('links to pages that are there, in the repository', () => {
    const links = relativeLinks(text)
    expect(links.length).toBeGreaterThan(50)
    expect(links.filter(({ target }) => !existsSync(join(repositoryRoot, target)))).toEqual([])
  })

  it('links to pages that are there, in the package', () => {
    const documents = stagedDocuments(repositoryRoot, 'packages/sluice/README.md')
    const staged = new Set(documents.map(({ to }) => to))
    const links = relativeLinks(documents.find(({ to }) => to === llmsTxtFile)!.text)
    expect(links.length).toBeGreaterThan(45)
    expect(links.filter(({ target }) => !staged.has(target))).toEqual([])
  })
})
