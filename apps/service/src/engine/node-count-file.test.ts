import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readNodeCount, saveNodeCount } from './counter-store.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-nodes-'))
  path = join(folder, 'node-count')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the file of the node count', () => {
  it('holds what was saved last, and leaves nothing beside it', () => {
    saveNodeCount(path, 3)
    saveNodeCount(path, 12)
    expect(readNodeCount(path)).toBe(12)
    expect(existsSync(`${path}.new`)).toBe(false)
  })

  it('may be missing', () => expect(readNodeCount(path)).toBeUndefined())

  it.each(['', '0', '-3', '1.5', 'three', '1000001', '\0\0\0\0'])('that holds %j counts for nothing', (text) => {
    writeFileSync(path, text)
    expect(readNodeCount(path)).toBeUndefined()
  })

  it('says when it cannot be written', () => {
    expect(() => saveNodeCount(join(folder, 'missing', 'node-count'), 3)).toThrow('ENOENT')
  })
})
