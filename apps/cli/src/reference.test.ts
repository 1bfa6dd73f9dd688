import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from './command-table.ts'
import { commandsReference, commonFlagsReference, exitCodesReference } from './reference.test.support.ts'

const reference = readFileSync(join(import.meta.dirname, '../../../docs/reference/cli.md'), 'utf8')

/** What stands between the marks of a part. */
function part(name: string): string | undefined {
  return new RegExp(`<!-- ${name}:begin -->\\n\\n([\\s\\S]*?)\\n\\n<!-- ${name}:end -->`).exec(reference)?.[1]
}

// When one of these fails, the text that it expected belongs between the marks of that part.
describe('docs/reference/cli.md', () => {
  it('has every command with its arguments, flags and examples, and no other', () => {
    expect(part('commands')).toBe(commandsReference(COMMANDS))
  })

  it('has the flags that all commands have', () => {
    expect(part('flags')).toBe(commonFlagsReference())
  })

  it('has the exit codes', () => {
    expect(part('exit-codes')).toBe(exitCodesReference())
  })
})
