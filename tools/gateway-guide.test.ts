// Every configuration that the guide to the gateway shows can be used as it stands there.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkRuleSetFile } from '@sluice/core/policy'
import { checkGatewayConfig } from '@sluice/gateway'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { GATEWAY_PROBLEMS } from '../packages/gateway/src/http/problems.ts'
import { repositoryRoot } from './workspace.ts'

interface ShownFile {
  readonly gateway?: Readonly<Record<string, unknown>>
  readonly routes?: readonly { readonly upstream: string; readonly auth?: string }[]
  readonly upstreams?: Readonly<Record<string, unknown>>
}

const pages = globSync('docs/guides/gateway/*.md', { cwd: repositoryRoot }).toSorted()

const shown = pages.flatMap((page) => {
  const text = readFileSync(join(repositoryRoot, page), 'utf8')
  return [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, block = ''], index) => [page, index, block] as const)
})

describe('the guide to the gateway', () => {
  it('lists every answer of the gateway itself', () => {
    const guide = readFileSync(join(repositoryRoot, 'docs/guides/gateway/operations.md'), 'utf8')
    const listed = [...guide.matchAll(/^\| (\d{3}) \| `([a-z-]+)` \| (.+) \|$/gm)].map(([, ...row]) => row)
    const own = Object.entries(GATEWAY_PROBLEMS).map(([name, { status, title }]) => [String(status), name, title])
    expect(listed).toEqual(own)
  })

  it('shows configurations', () => {
    expect(shown.length).toBeGreaterThan(10)
  })

  it.each(shown)('%s: block %d can be used', (_page, _index, block) => {
    const file = parse(block) as ShownFile
    // A part of a file names upstreams that another part has.
    const missing = Object.fromEntries(
      (file.routes ?? []).map(({ upstream }) => [upstream, { instances: [{ url: 'http://127.0.0.1:3000' }] }]),
    )
    const whole = { rules: [], ...file, upstreams: { ...missing, ...file.upstreams } }
    const { gateway, routes, upstreams } = whole
    const parts = { ...(gateway && { gateway }), ...(routes && { routes }), upstreams }
    expect(checkRuleSetFile(whole)).toEqual([])
    expect(checkGatewayConfig(parts, { folder: repositoryRoot })).toEqual([])
  })
})
