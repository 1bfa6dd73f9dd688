import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { repositoryRoot } from './workspace.ts'

/** Where the codes of each part come from, and the heading under which the reference explains them. */
const CATALOGUES = [
  { heading: 'Library', file: 'packages/core/src/errors.ts', name: 'ERROR_CODES' },
  { heading: 'Building blocks', file: 'packages/runtime/src/runtime-error.ts', name: 'RUNTIME_ERRORS' },
  { heading: 'Service over HTTP', file: 'packages/contract/src/service/problem.ts', name: 'PROBLEMS' },
  { heading: 'Service process', file: 'apps/service/src/service-error.ts', name: 'SERVICE_ERRORS' },
  { heading: 'Client', file: 'packages/client/src/errors/client-error.ts', name: 'CLIENT_ERRORS' },
  { heading: 'Command line', file: 'apps/cli/src/output/cli-error.ts', name: 'CLI_ERRORS' },
] as const

/** Mistakes that are reported and not thrown have a page of their own. */
const MISUSES = { file: 'packages/middleware/src/misuse/misuse-warning.ts', name: 'MISUSES' } as const

const reference = read('docs/reference/errors.md')
const misuseReference = read('docs/reference/misuse.md')

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

/** The parts of the reference by their second-level heading. */
const sections = new Map(
  reference
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
)

async function codesOf(file: string, name: string): Promise<string[]> {
  const catalogue = (await import(join(repositoryRoot, file))) as Record<string, object>
  return Object.keys(catalogue[name] ?? {})
}

function codesExplained(heading: string): string[] {
  return headingsOf(sections.get(heading) ?? '')
}

function headingsOf(text: string): string[] {
  return [...text.matchAll(/^### `(SLUICE_[A-Z0-9_]+)`$/gm)].map((match) => match[1]!)
}

/** The headings of entries that do not say what the code means, why it happens and what to do. */
function incompleteEntries(text: string): (string | undefined)[] {
  const entries = text.split(/^### /m).slice(1)
  const incomplete = entries.filter((entry) => !/\n\n.+[\s\S]*\n- Cause: .+[\s\S]*\n- Do: .+/.test(entry))
  return incomplete.map((entry) => entry.split('\n')[0])
}

describe('the error reference', () => {
  it.each(CATALOGUES)('explains every code of $name once, and no other', async ({ heading, file, name }) => {
    const codes = await codesOf(file, name)
    expect(codes).not.toEqual([])
    expect(codesExplained(heading).toSorted()).toEqual(codes.toSorted())
  })

  it('has no code outside these parts', () => {
    const explained = CATALOGUES.flatMap(({ heading }) => codesExplained(heading))
    const mentioned = new Set(reference.match(/\bSLUICE_[A-Z0-9_]+/g))
    expect([...mentioned].filter((code) => !explained.includes(code))).toEqual([])
  })

  it('says of every code what it means, why it happens and what to do', () => {
    expect(incompleteEntries(reference)).toEqual([])
  })
})

describe('the reference of misuse', () => {
  it('explains every warning once, and no other', async () => {
    const codes = await codesOf(MISUSES.file, MISUSES.name)
    expect(codes).not.toEqual([])
    expect(headingsOf(misuseReference).toSorted()).toEqual(codes.toSorted())
  })

  it('has the meaning, the cause and the remedy of every warning', () => {
    expect(incompleteEntries(misuseReference)).toEqual([])
  })
})
