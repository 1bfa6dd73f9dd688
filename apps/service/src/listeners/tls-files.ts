import { readFileSync } from 'node:fs'
import { ServiceError } from '../service-error.ts'
import type { TlsSettings } from '../settings.ts'

/** What a TLS server is created with. */
export interface TlsFiles {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer
  readonly requestCert?: boolean
  readonly rejectUnauthorized?: boolean
}

/**
 * Reads the files of a listener. With issuers of client certificates, every client needs a certificate of one of them.
 * Throws `SLUICE_SERVICE_INVALID_SETTING` if a file cannot be read.
 */
export function tlsFiles(listener: string, { cert, key, clientCa }: TlsSettings): TlsFiles {
  const files = { cert: readPem(cert, `--${listener}-tls-cert`), key: readPem(key, `--${listener}-tls-key`) }
  if (clientCa === undefined) return files
  const ca = readPem(clientCa, `--${listener}-tls-client-ca`)
  return { ...files, ca, requestCert: true, rejectUnauthorized: true }
}

function readPem(path: string, flag: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
      received: `${flag} ${path}, which cannot be read (${(cause as Error).message})`,
      expected: 'a readable PEM file',
      action: 'Correct the path, or the permissions of the file.',
      cause,
    })
  }
}
