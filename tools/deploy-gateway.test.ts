// deploy/kubernetes-gateway fits the service, and deploy/kubernetes, which it is applied with.
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { checkRulesFile } from '@sluice/service/rules-file'
import { readSettings } from '@sluice/service/settings'
import { describe, expect, it } from 'vitest'
import { deployPath, kubernetesObjects, readDeployYaml } from './deploy.test.support.ts'

const FOLDER = 'kubernetes-gateway'

interface Kustomization {
  readonly namespace: string
  readonly resources: readonly string[]
  readonly patches: readonly { readonly path: string }[]
  readonly configMapGenerator: readonly [{ readonly name: string; readonly files: readonly [string] }]
}

interface Pods {
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: {
        readonly containers: readonly [Container]
        readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[]
      }
    }
  }
}

interface Container {
  readonly name: string
  readonly env: readonly [{ readonly name: string; readonly value: string }]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

describe('the pods of Kubernetes with the gateway', () => {
  const kustomization = readDeployYaml<Kustomization>(`${FOLDER}/kustomization.yaml`)
  const base = readDeployYaml<Kustomization>('kubernetes/kustomization.yaml')
  const patch = readDeployYaml<Pods>(`${FOLDER}/deployment.yaml`)
  const patched = readDeployYaml<Pods>('kubernetes/deployment.yaml')
  const { containers, volumes } = patch.spec.template.spec
  const [{ env, ports, volumeMounts, name }] = containers
  const [generated] = kustomization.configMapGenerator
  const file = deployPath(`${FOLDER}/${generated.files[0]}`)

  it('are made of files that exist, and change the deployment', () => {
    const { resources, patches, namespace } = kustomization
    for (const path of [...resources, ...patches.map((one) => one.path)]) {
      expect(existsSync(deployPath(`${FOLDER}/${path}`)), path).toBe(true)
    }
    expect(resources[0]).toBe('../kubernetes')
    expect(namespace).toBe(base.namespace)
    expect(patch.metadata).toEqual({ name: patched.metadata.name, namespace: patched.metadata.namespace })
    expect(name).toBe(patched.spec.template.spec.containers[0].name)
    // A name that both have would be replaced.
    for (const part of ['env', 'ports', 'volumeMounts'] as const) {
      const taken = patched.spec.template.spec.containers[0][part].map((one) => one.name)
      expect(taken).not.toContain(containers[0][part][0]!.name)
    }
  })

  it('read the file that they mount, and listen on the port that they name', () => {
    const [variable] = env
    expect(variable.name).toBe('SLUICE_CONFIG')
    expect(basename(variable.value)).toBe(basename(file))
    expect(volumeMounts).toEqual([{ name: volumes[0]!.name, mountPath: dirname(variable.value), readOnly: true }])
    expect(volumes[0]!.configMap!.name).toBe(generated.name)
    const settings = readSettings({
      args: [],
      environment: { SLUICE_CONFIG: variable.value },
      cores: 1,
      readFile: () => readFileSync(file, 'utf8'),
    })
    expect(settings.gateway).toMatchObject({ hasRoutes: true, file: variable.value })
    // The rules are those of the database.
    expect(settings.rulesFile).toBeUndefined()
    expect(ports).toEqual([{ name: 'gateway', containerPort: settings.gateway!.port }])
  })

  it('have routes that the gateway takes', async () => {
    const settings = readSettings({ args: [], environment: { SLUICE_CONFIG: file }, cores: 1 })
    expect(await checkRulesFile(settings)).toEqual({ rules: 0, undeclared: [] })
  })

  it('can be reached on that port', () => {
    const labels = patched.spec.template.metadata.labels
    const [service] = kubernetesObjects(`../${FOLDER}/service.yaml`)
    expect(service!['spec']).toMatchObject({ selector: labels, ports: [{ targetPort: ports[0]!.name }] })
    const [policy] = kubernetesObjects(`../${FOLDER}/networkpolicy.yaml`)
    expect(policy!['spec']).toMatchObject({
      podSelector: { matchLabels: labels },
      ingress: [{ ports: [{ port: ports[0]!.name }] }],
    })
  })
})
