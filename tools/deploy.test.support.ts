import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { repositoryFiles } from './repository-files.ts'
import { repositoryRoot } from './workspace.ts'

// What the tests of deploy/ share: its files, and what stands in them.

/** Absolute path of a file or folder of deploy/. */
export function deployPath(path: string): string {
  return join(repositoryRoot, 'deploy', path)
}

/** The text of a file of deploy/. */
export function readDeployFile(path: string): string {
  return readFileSync(deployPath(path), 'utf8')
}

/** Paths of all files of deploy/, relative to it. */
export function deployFiles(): readonly string[] {
  return repositoryFiles(repositoryRoot, 'deploy').map((path) => path.slice('deploy/'.length))
}

/** A YAML file of deploy/ with one document. `T` is what the test expects to find. */
export function readDeployYaml<T>(path: string): T {
  return parse(readDeployFile(path)) as T
}

/** An object of Kubernetes. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [part: string]: unknown
}

/** The objects of a file of deploy/kubernetes. A mistake in the YAML throws. */
export function kubernetesObjects(file: string): readonly KubernetesObject[] {
  return parseAllDocuments(readDeployFile(`kubernetes/${file}`)).map((document) => {
    const [mistake] = [...document.errors, ...document.warnings]
    if (mistake !== undefined) throw mistake
    return document.toJS() as KubernetesObject
  })
}

/** The variables that the image is made with. */
export function imageEnvironment(): Readonly<Record<string, string>> {
  const [, block = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(readDeployFile('Dockerfile')) ?? []
  return assignments(block.split(/\s*\\\n\s*/))
}

/** The JSON list after an instruction of the Dockerfile, such as `ENTRYPOINT` or the `CMD` of `HEALTHCHECK`. */
export function imageCommand(instruction: string): readonly string[] {
  const [, list = 'null'] = new RegExp(`^\\s*${instruction} (\\[.*\\])$`, 'm').exec(readDeployFile('Dockerfile')) ?? []
  return JSON.parse(list)
}

/** The values of a directive of the systemd unit, in their order. */
export function unitValues(directive: string): readonly string[] {
  return [...readDeployFile('systemd/sluice.service').matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(
    ([, value = '']) => value,
  )
}

/** Texts of the form NAME=value, as an object. */
export function assignments(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const end = text.indexOf('=')
      return [text.slice(0, end), text.slice(end + 1)]
    }),
  )
}

/** A rule of Prometheus: one that records, or one that alerts. */
export interface PrometheusRule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly keep_firing_for?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** The rules of a file of deploy/prometheus. */
export function prometheusRules(file: string): readonly PrometheusRule[] {
  const { groups } = readDeployYaml<{ groups: readonly { rules: readonly PrometheusRule[] }[] }>(`prometheus/${file}`)
  return groups.flatMap(({ rules }) => rules)
}

/** A panel of a dashboard. */
export interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[]
}

/** A dashboard of Grafana. */
export interface Dashboard {
  readonly uid: string
  readonly links: readonly { readonly title: string; readonly url?: string }[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[]
  }
  readonly panels: readonly Panel[]
}

/** The dashboards, by file name. */
export function dashboards(): readonly (readonly [string, Dashboard])[] {
  const folder = 'grafana/dashboards/'
  return deployFiles()
    .filter((path) => path.startsWith(folder))
    .map((path) => [path.slice(folder.length), JSON.parse(readDeployFile(path)) as Dashboard])
}
