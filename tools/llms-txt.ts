import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { Manifest } from './workspace.ts'
import { readJson } from './workspace.ts'

/** The overview for language models (https://llmstxt.org), in the repository and in the package. */
export const llmsTxtFile = 'llms.txt'

const SECTION = /^## (.+)\n\n((?:(?!## ).*\n?)*)/gm
const LINK = /\[([^\]]+)\]\(([^)#\s]+\.md)\)/g
const TITLE = /^# (.+)$/m
/** The first paragraph after the title; a page that begins with a list or a table has none. */
const FIRST_PARAGRAPH = /^# .+\n\n([A-Z`](?:.+\n)+)/m
const FIRST_SENTENCE = /^(.+?)(?:\.(?:\s|$)|:$)/

/**
 * The overview, made of the documents themselves: what the README says first, its program without a framework, and
 * every page that docs/README.md lists, with the first sentence of each.
 */
export function renderLlmsTxt(root: string): string {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  const readme = read('README.md')
  const [, summary = ''] = FIRST_PARAGRAPH.exec(readme) ?? []
  const [program = ''] = /^```ts\n[\s\S]*?^```$/m.exec(readme) ?? []
  const { name, engines } = readJson<Manifest>(join(root, 'packages/sluice/package.json'))
  const facts = `The npm package is \`${name}\`: ES modules with types, for Node ${engines?.['node']}. A program:`
  const sections = [...read('docs/README.md').matchAll(SECTION)].map(([, heading = '', list = '']) => {
    const lines = [...list.matchAll(LINK)].map(([, , target = '']) => entryOf(posix.join('docs', target), read))
    return `## ${heading}\n\n${[...new Set(lines)].join('\n')}\n`
  })
  return ['# Sluice\n', `> ${oneLine(summary)}\n`, `${facts}\n`, `${program}\n`, ...sections].join('\n')
}

function entryOf(path: string, read: (path: string) => string): string {
  const text = read(path)
  const [, title = path] = TITLE.exec(text) ?? []
  const [, paragraph = ''] = FIRST_PARAGRAPH.exec(text) ?? []
  const [, sentence = ''] = FIRST_SENTENCE.exec(oneLine(paragraph)) ?? []
  const plain = sentence.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
  return `- [${title}](${path})${plain === '' ? '' : `: ${plain}.`}`
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ')
}
