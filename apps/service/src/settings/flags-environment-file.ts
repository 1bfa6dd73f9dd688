import { parseArgs } from 'node:util'
import type { JsonSchema } from '@sluice/core/internal'
import { SchemaCheck } from '@sluice/core/internal'
import { parseDocument } from 'yaml'
import type { ServiceProblem } from '../service-error.ts'
import type { AlertOptions } from './alert-settings.ts'
import { ALERT_OPTIONS_SCHEMA } from './alert-settings.ts'
import type { SettingName, SettingValues } from './setting-table.ts'
import { SETTING_NAMES, SETTING_TABLE } from './setting-table.ts'

/** Settings of one source. */
export interface GivenSettings extends Partial<SettingValues> {
  /** Only in a file, because it is nested. */
  readonly alerts?: AlertOptions
}

/** A problem with a setting. */
export type SettingProblem = ServiceProblem

/** Schema of the `service` part of a file. */
export const SERVICE_PART_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...Object.fromEntries(
      SETTING_NAMES.map((name) => [name, { description: SETTING_TABLE[name].help, ...SETTING_TABLE[name].schema }]),
    ),
    alerts: { description: 'Alert rules.', ...ALERT_OPTIONS_SCHEMA },
  },
}

const CHECK = new SchemaCheck(SERVICE_PART_SCHEMA)

/** Schema of flag names, to suggest the nearest one. */
const FLAG_CHECK = new SchemaCheck({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(SETTING_NAMES.map((name) => [SETTING_TABLE[name].flag, {} satisfies JsonSchema])),
})

/** Variables of older versions. They are rejected, because ignoring one would disable its feature. */
const RENAMED_VARIABLES = { SLUICE_ALERT_SECRET: 'SLUICE_WEBHOOK_SECRET' } as const

/** Settings from environment variables. */
export function settingsOfEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  problems: SettingProblem[],
): GivenSettings {
  const given: Record<string, unknown> = {}
  for (const name of SETTING_NAMES) {
    const { variable } = SETTING_TABLE[name]
    const text = environment[variable]
    if (text !== undefined && text !== '') take(given, { name, text, from: variable }, problems)
  }
  for (const [old, now] of Object.entries(RENAMED_VARIABLES)) {
    if (environment[old]) problems.push({ received: `${old}, which is not read any more`, expected: `${now} instead` })
  }
  return given
}

/** Settings from command-line arguments. */
export function settingsOfFlags(args: readonly string[], problems: SettingProblem[]): GivenSettings {
  const names = new Map(SETTING_NAMES.map((name) => [SETTING_TABLE[name].flag, name]))
  const options = Object.fromEntries(
    SETTING_NAMES.map((name) => [
      SETTING_TABLE[name].flag,
      { type: SETTING_TABLE[name].argument === '' ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const given: Record<string, unknown> = {}
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    const negated = token.kind === 'option' ? negatedSwitch(token, names) : undefined
    if (negated !== undefined) {
      given[negated] = false
      continue
    }
    const name = token.kind === 'option' ? names.get(token.name) : undefined
    if (token.kind === 'positional') problems.push({ received: JSON.stringify(token.value), expected: 'only flags' })
    else if (name === undefined) problems.push(unknownFlag(token.rawName, token.name))
    else if (token.value === undefined && SETTING_TABLE[name].argument !== '') {
      problems.push({
        received: `${token.rawName} without a value`,
        expected: `${token.rawName} followed by ${expectedOf(name)}`,
      })
    } else take(given, { name, text: token.value ?? 'true', from: token.rawName }, problems)
  }
  return given
}

/** The switch that `--no-<switch>` turns off; undefined for other flags. */
function negatedSwitch(
  { name, value }: { readonly name: string; readonly value?: string | undefined },
  names: ReadonlyMap<string, SettingName>,
): SettingName | undefined {
  const setting = name.startsWith('no-') && value === undefined ? names.get(name.slice('no-'.length)) : undefined
  return setting !== undefined && SETTING_TABLE[setting].schema.type === 'boolean' ? setting : undefined
}

/** Parts of a file that are for the gateway. */
const GATEWAY_PARTS: readonly string[] = ['gateway', 'routes', 'upstreams']

/** What a file says about itself. */
const FILE_FACTS: readonly string[] = ['$schema', 'version']

/** What a configuration file says to the settings. */
export interface FileSettings {
  readonly settings: GivenSettings
  /** Whether it has anything besides settings and parts for the gateway. */
  readonly hasRules: boolean
  /** Whether it has parts for the gateway. */
  readonly hasGateway: boolean
  /** Whether it has routes of the gateway. */
  readonly hasRoutes: boolean
  /** Whether the gateway has certificates. */
  readonly isTls: boolean
}

/** Settings from a configuration file, and whether it contains rules and routes. */
export function settingsOfFile(
  path: string,
  readFile: (path: string) => string,
  problems: SettingProblem[],
): FileSettings {
  const content = contentOf(path, readFile, problems)
  const { service, ...rest } = (content ?? {}) as FileParts
  // Everything except `service` is validated when the rules are loaded.
  const names = Object.keys(rest)
  const hasGateway = names.some((name) => GATEWAY_PARTS.includes(name))
  const hasRules = names.some((name) => !(hasGateway && [...GATEWAY_PARTS, ...FILE_FACTS].includes(name)))
  const hasRoutes = rest.routes !== undefined && !(Array.isArray(rest.routes) && rest.routes.length === 0)
  const gateway = { hasGateway, hasRoutes, isTls: rest.gateway?.tls !== undefined }
  if (service === undefined) return { settings: {}, hasRules, ...gateway }
  const found = serviceProblems(service, path)
  problems.push(...found)
  return { settings: found.length === 0 ? (service as GivenSettings) : {}, hasRules, ...gateway }
}

/** The parts of a file that settings depend on, unchecked. */
interface FileParts {
  readonly service?: unknown
  readonly routes?: unknown
  readonly gateway?: { readonly tls?: unknown } | null
}

/** Problems of the `service` part of a file, without secrets. */
export function serviceProblems(service: unknown, file: string): readonly SettingProblem[] {
  const problems = CHECK.problemsOf(service).map(({ path: place, received, expected }): SettingProblem => {
    const name = place.slice(1) as SettingName
    const isSecret = Object.hasOwn(SETTING_TABLE, name) && SETTING_TABLE[name].isSecret === true
    return {
      received: `${file} with service${place.replaceAll('/', '.')} ${isSecret ? '(hidden)' : received}`,
      expected: `service${place.replaceAll('/', '.')} to be ${expected}`,
    }
  })
  const namesOther = typeof service === 'object' && service !== null && 'config' in service
  if (namesOther)
    problems.push({ received: `${file} with service.config`, expected: 'a file that does not refer to another' })
  return problems
}

function contentOf(path: string, readFile: (path: string) => string, problems: SettingProblem[]): object | undefined {
  try {
    const document = parseDocument(readFile(path), { prettyErrors: false, logLevel: 'error', merge: true })
    const content: unknown = document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: 10_000 })
    // A file that is not valid YAML is reported, with line numbers, when the rules are loaded.
    return typeof content === 'object' && content !== null ? content : { rules: undefined }
  } catch (error) {
    problems.push({
      received: `--config ${path}, which cannot be read (${(error as Error).message})`,
      expected: 'a readable file',
    })
    return undefined
  }
}

interface Given {
  readonly name: SettingName
  readonly text: string
  /** The flag or variable. */
  readonly from: string
}

function take(settings: Record<string, unknown>, { name, text, from }: Given, problems: SettingProblem[]): void {
  const value = readValue(name, text)
  if (CHECK.problemsOf({ [name]: value }).length === 0) settings[name] = value
  else {
    const shown = SETTING_TABLE[name].isSecret ? '(hidden)' : JSON.stringify(text)
    problems.push({ received: `${from}=${shown}`, expected: `${from} to be ${expectedOf(name)}` })
  }
}

const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Converts a string to the type of its setting. */
function readValue(name: SettingName, text: string): unknown {
  const { schema } = SETTING_TABLE[name]
  if (schema.type === 'boolean') return SWITCH_WORDS.get(text) ?? text
  const isNumber = schema.type === 'integer' || schema.anyOf?.some(({ type }) => type === 'integer') === true
  return isNumber && /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** Description of the valid values of a setting. */
function expectedOf(name: SettingName): string {
  const [problem] = CHECK.problemsOf({ [name]: null })
  return problem?.expected ?? ''
}

function unknownFlag(rawName: string, name: string): SettingProblem {
  const [problem] = FLAG_CHECK.problemsOf({ [name]: true })
  const meant = /did you mean "(.+)"/.exec(problem?.expected ?? '')?.[1]
  return {
    received: `the unknown flag ${rawName}`,
    expected: meant === undefined ? 'a flag that --help lists' : `a known one (did you mean --${meant}?)`,
  }
}
