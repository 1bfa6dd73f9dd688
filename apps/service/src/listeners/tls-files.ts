import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { SecureContextOptions } from 'node:tls'
import { createSecureContext } from 'node:tls'
import type { ReadinessReason } from '@sluice/contract'
import type { Logger, Sleep } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import { ServiceError } from '../service-error.ts'
import type { TlsSettings } from '../settings/settings.ts'

/** What a TLS server is created with. */
export interface TlsFiles {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer
  readonly requestCert?: boolean
  readonly rejectUnauthorized?: boolean
}

/** A server whose certificate can be replaced: new connections get the new one. */
export interface TlsServer {
  setSecureContext(options: SecureContextOptions): void
}

/** Options of {@link ListenerTls}. */
export interface ListenerTlsParts {
  /** As the flags of its settings begin. */
  readonly listener: string
  readonly tls: TlsSettings
  readonly sleep: Sleep
  readonly log: Logger
}

/** How often the files are read. Not watched by events: mounted secrets are replaced by changing links. */
export const RELOAD_EVERY_MS = 4000

/**
 * The TLS files of a listener, read again while it runs. Files that cannot be used leave the last good ones in place
 * until they are replaced.
 */
export class ListenerTls {
  readonly #parts: ListenerTlsParts
  #used: TlsFiles
  /** Contents that could not be used, so that they are logged once. */
  #bad: TlsFiles | undefined
  #problem: string | undefined

  /**
   * Throws `SLUICE_SERVICE_INVALID_SETTING` if a file cannot be read, or certificate and key do not belong together.
   */
  constructor(parts: ListenerTlsParts) {
    this.#parts = parts
    this.#used = tlsFiles(parts.listener, parts.tls)
  }

  /** The files in use. With issuers of client certificates, every client needs a certificate of one of them. */
  get files(): TlsFiles {
    return this.#used
  }

  /** Why the files on disk are not those in use. */
  get reasons(): readonly ReadinessReason[] {
    if (this.#problem === undefined) return []
    const { listener } = this.#parts
    const message =
      `The TLS files of the listener ${listener} cannot be used (${this.#problem}). The previous certificate stays ` +
      `in use until it expires. Correct the files of --${listener}-tls-cert and --${listener}-tls-key.`
    return [{ code: 'tls-files-unusable', message }]
  }

  /** Gives a server the files whenever they have changed, until `signal`. */
  async follow(server: TlsServer, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#parts.sleep(RELOAD_EVERY_MS, signal).catch(() => undefined)
      if (!signal.aborted) await this.#reload(server)
    }
  }

  async #reload(server: TlsServer): Promise<void> {
    const { log, listener, tls } = this.#parts
    let found: TlsFiles | undefined
    try {
      const [cert, key, ca] = await Promise.all(
        [tls.cert, tls.key, ...optional(tls.clientCa)].map((path) => readFile(path)),
      )
      found = filesOf(cert!, key!, ca)
      if (!isSame(found, this.#used)) {
        if (this.#bad !== undefined && isSame(found, this.#bad)) return
        createSecureContext({ ...found })
        server.setSecureContext({ ...found })
        this.#used = found
        log.info('the TLS files of a listener have changed and are in use', { listener })
      }
      this.#bad = undefined
      this.#problem = undefined
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#problem) {
        log.error('the TLS files of a listener cannot be used', { listener, error: errorFields(error) })
      }
      this.#bad = found
      this.#problem = message
    }
  }
}

function tlsFiles(listener: string, { cert, key, clientCa }: TlsSettings): TlsFiles {
  const files = filesOf(
    readPem(cert, `--${listener}-tls-cert`),
    readPem(key, `--${listener}-tls-key`),
    clientCa === undefined ? undefined : readPem(clientCa, `--${listener}-tls-client-ca`),
  )
  try {
    createSecureContext({ ...files })
  } catch (cause) {
    throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
      received: `--${listener}-tls-cert ${cert} and --${listener}-tls-key ${key} (${(cause as Error).message})`,
      expected: 'a certificate and its private key, both PEM',
      action: 'Correct the paths, or create the pair again.',
      cause,
    })
  }
  return files
}

function filesOf(cert: Buffer, key: Buffer, ca: Buffer | undefined): TlsFiles {
  return ca === undefined ? { cert, key } : { cert, key, ca, requestCert: true, rejectUnauthorized: true }
}

function isSame(one: TlsFiles, other: TlsFiles): boolean {
  const hasSameIssuers = one.ca === undefined || other.ca === undefined ? one.ca === other.ca : one.ca.equals(other.ca)
  return one.cert.equals(other.cert) && one.key.equals(other.key) && hasSameIssuers
}

function optional(path: string | undefined): readonly string[] {
  return path === undefined ? [] : [path]
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
