// Takes the place of `vitest` in bundles of tests, so that the same tests run where vitest does not: on Bun and Deno.
// It has what these tests use. A test that uses more fails to bundle.
import { expect } from 'expect'

export { expect }

type Body = (...args: never[]) => unknown

interface Suite {
  readonly name: string
  readonly parent: Suite | undefined
  readonly beforeAll: Body[]
  readonly afterAll: Body[]
  readonly beforeEach: Body[]
  readonly afterEach: Body[]
  readonly children: (Suite | Test)[]
}

/** What a test gets as its last argument. */
interface TestContext {
  skip(reason?: string): never
}

interface Test {
  readonly name: string
  readonly run: (context: TestContext) => unknown
}

class Skipped extends Error {}

/** Ends the test that calls it, which then counts as skipped. */
export function skipTest(reason?: string): never {
  throw new Skipped(reason)
}

const CONTEXT: TestContext = { skip: skipTest }

/** What a run of all tests came to. */
export interface PortableResult {
  readonly passed: number
  /** Tests that say themselves that they cannot run. */
  readonly skipped: number
  /** Name and error of each test that failed. */
  readonly failed: readonly string[]
}

const root: Suite = makeSuite('', undefined)
let current: Suite = root
let endings: Body[] = []

function makeSuite(name: string, parent: Suite | undefined): Suite {
  return { name, parent, beforeAll: [], afterAll: [], beforeEach: [], afterEach: [], children: [] }
}

function describeSuite(name: string, body: Body): void {
  const suite = makeSuite(name, current)
  current.children.push(suite)
  current = suite
  body()
  current = suite.parent!
}

function addTest(name: string, ...rest: readonly unknown[]): void {
  const body = rest.find((part) => typeof part === 'function') as Body
  current.children.push({ name, run: body as Test['run'] })
}

type Adding = (name: string, ...rest: readonly unknown[]) => void

/** `it.each(table)(name, body)`: a row that is an array is the arguments, anything else is the only one. */
function each(add: Adding) {
  return (table: readonly unknown[]) =>
    (name: string, ...rest: readonly unknown[]): void => {
      const options = rest.filter((part) => typeof part !== 'function')
      const body = rest.find((part) => typeof part === 'function') as (...args: readonly unknown[]) => unknown
      for (const row of table) {
        const args = Array.isArray(row) ? (row as readonly unknown[]) : [row]
        let next = 0
        const title = name.replaceAll(/%[a-z]/g, () => String(args[next++]))
        add(title, ...options, (context: unknown) => body(...args, context))
      }
    }
}

export const describe = Object.assign(describeSuite, { each: each(describeSuite as Adding) })
export const it = Object.assign(addTest, { each: each(addTest) })
export const beforeAll = (body: Body): void => void current.beforeAll.push(body)
export const afterAll = (body: Body): void => void current.afterAll.push(body)
export const beforeEach = (body: Body): void => void current.beforeEach.push(body)
export const afterEach = (body: Body): void => void current.afterEach.push(body)
export const onTestFinished = (body: Body): void => void endings.push(body)

export const vi = {
  /** A function that remembers its calls, in the form that `expect` looks for. */
  fn(implementation: (...args: unknown[]) => unknown = () => undefined): unknown {
    const calls: unknown[][] = []
    const mock = (...args: unknown[]): unknown => {
      calls.push(args)
      return implementation(...args)
    }
    return Object.assign(mock, { _isMockFunction: true, getMockName: () => 'fn', mock: { calls, results: [] } })
  },
}

/** A suite and those that it is in, outermost first. */
function lineage(suite: Suite): Suite[] {
  return suite.parent === undefined ? [suite] : [...lineage(suite.parent), suite]
}

function nameOf(suite: Suite, test: Test): string {
  return [...lineage(suite).slice(1), test].map(({ name }) => name).join(' > ')
}

/** Runs what was declared, one test after the other. */
export async function runPortableTests(): Promise<PortableResult> {
  const failed: string[] = []
  let passed = 0
  let skipped = 0
  const runTest = async (suite: Suite, test: Test): Promise<void> => {
    endings = []
    try {
      for (const { beforeEach: hooks } of lineage(suite)) for (const hook of hooks) await runHook(hook, endings)
      await test.run(CONTEXT)
      passed++
    } catch (error) {
      if (error instanceof Skipped) skipped++
      else failed.push(`${nameOf(suite, test)}: ${error instanceof Error ? error.stack : String(error)}`)
    }
    for (const ending of endings.toReversed()) await ending()
    for (const { afterEach: hooks } of lineage(suite).toReversed()) for (const hook of hooks) await hook()
  }
  const runSuite = async (suite: Suite): Promise<void> => {
    for (const hook of suite.beforeAll) await runHook(hook, suite.afterAll)
    for (const child of suite.children) await ('run' in child ? runTest(suite, child) : runSuite(child))
    for (const hook of suite.afterAll.toReversed()) await hook()
  }
  await runSuite(root)
  return { passed, skipped, failed }
}

/** A hook that returns a function wants it called at the end. */
async function runHook(hook: Body, ends: Body[]): Promise<void> {
  const end = await hook()
  if (typeof end === 'function') ends.push(end as Body)
}
