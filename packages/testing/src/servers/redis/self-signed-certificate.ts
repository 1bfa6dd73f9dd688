import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { missingProgram } from '../process/server-process.ts'

const run = promisify(execFile)

/** A certificate for localhost and 127.0.0.1 that is its own authority, good for two days. */
export interface SelfSignedCertificate {
  /** The certificate in PEM: what a client has to trust. */
  readonly ca: string
  readonly certificateFile: string
  readonly keyFile: string
}

/** Makes a certificate and its key, in files of this folder. Needs the program `openssl`. */
export async function makeCertificate(folder: string): Promise<SelfSignedCertificate> {
  const certificateFile = join(folder, 'certificate.pem')
  const keyFile = join(folder, 'key.pem')
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-keyout', keyFile]
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  try {
    await run('openssl', ['req', '-x509', ...key, ...name, '-days', '2', '-out', certificateFile])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw missingProgram('openssl', error as Error)
    throw error
  }
  return { ca: await readFile(certificateFile, 'utf8'), certificateFile, keyFile }
}
