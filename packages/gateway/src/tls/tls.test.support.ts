import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A requirement of the tests. */
const OPENSSL = 'openssl'

/** Files of a certificate and its key. */
export interface TestCertificate {
  readonly cert: string
  readonly key: string
}

/** A folder that is removed with the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-gateway-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Makes a self-signed certificate for these names. */
export function makeCertificate(folder: string, file: string, names: readonly string[]): TestCertificate {
  const cert = join(folder, `${file}.crt`)
  const key = join(folder, `${file}.key`)
  const alternatives = names.map((name) => `DNS:${name}`).join(',')
  execFileSync(
    OPENSSL,
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-days', '2'],
      ...['-keyout', key, '-out', cert, '-subj', `/CN=${names[0]}`, '-addext', `subjectAltName=${alternatives}`],
    ],
    { stdio: 'ignore' },
  )
  return { cert, key }
}
