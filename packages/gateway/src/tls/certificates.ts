import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Timers } from '@sluice/core'
import type { Logger } from '@sluice/runtime'
import type { TlsConfig } from '../config/gateway-config.ts'

/** How often files are looked at. */
export const CERTIFICATES_EVERY_MS = 10_000

/** Older versions of TLS are not spoken. */
const LEAST_VERSION = 'TLSv1.2'

/** A certificate and its key, as read. */
export interface CertificatePair {
  readonly cert: Buffer
  readonly key: Buffer
  readonly context: SecureContext
  /** In lower case. */
  readonly names: readonly string[]
  /** Changes when a file does. */
  readonly stamp: string
}

type CertificateConfig = TlsConfig['certificates'][number]

/** What certificates need of the gateway. */
export interface CertificatesParts {
  readonly timers: Timers
  readonly logger: Logger
}

/** Certificates by name of the server, read again when their files change. */
export class Certificates {
  /** Told when the certificate for clients without a name was read again. */
  onFirst: ((pair: CertificatePair) => void) | undefined
  readonly #parts: CertificatesParts
  readonly #configs: readonly CertificateConfig[]
  #pairs: CertificatePair[] = []
  #byName = new Map<string, SecureContext>()
  #cancel: (() => void) | undefined
  #isClosed = false
  /** Problems that were reported, so that each is reported once. */
  readonly #problems = new Map<string, string>()

  constructor(config: TlsConfig, parts: CertificatesParts) {
    this.#configs = config.certificates
    this.#parts = parts
  }

  /** The pair for clients that name no server, or one that has no certificate. */
  get first(): CertificatePair {
    return this.#pairs[0]!
  }

  /** Reads all pairs; rejects if one cannot be used. Then looks after them until `close`. */
  async start(): Promise<void> {
    this.#pairs = await Promise.all(this.#configs.map((config) => readPair(config)))
    this.#index()
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
  }

  /** For the TLS extension by which a client names the server. */
  readonly contextOf = (name: string): SecureContext => {
    const lower = name.toLowerCase()
    const dot = lower.indexOf('.')
    return (
      this.#byName.get(lower) ?? (dot < 0 ? undefined : this.#byName.get(`*${lower.slice(dot)}`)) ?? this.first.context
    )
  }

  /** Reads pairs whose files have changed. One that cannot be used is reported; the previous one stays in use. */
  async refresh(): Promise<void> {
    const pairs = [...this.#pairs]
    for (const [index, config] of this.#configs.entries()) {
      try {
        const stamp = await stampOf(config)
        if (stamp === pairs[index]!.stamp) continue
        pairs[index] = await readPair(config)
        this.#problems.delete(config.cert)
        this.#parts.logger.info('a certificate was read again', { file: config.cert, names: pairs[index].names })
      } catch (error) {
        this.#report(config.cert, (error as Error).message)
      }
    }
    const isFirstNew = pairs[0] !== this.#pairs[0]
    this.#pairs = pairs
    this.#index()
    if (isFirstNew) this.onFirst?.(this.first)
  }

  #report(file: string, problem: string): void {
    if (this.#problems.get(file) === problem) return
    this.#problems.set(file, problem)
    this.#parts.logger.error('a certificate cannot be used: the previous one stays in use', { file, problem })
  }

  #index(): void {
    const byName = new Map<string, SecureContext>()
    // The first pair that has a name is the one for it.
    for (const { names, context } of this.#pairs.toReversed()) for (const name of names) byName.set(name, context)
    this.#byName = byName
  }

  #schedule(): void {
    this.#cancel = this.#parts.timers.schedule(CERTIFICATES_EVERY_MS, () => {
      void this.refresh().then(() => {
        if (!this.#isClosed) this.#schedule()
      })
    })
  }
}

async function readPair(config: CertificateConfig): Promise<CertificatePair> {
  // Before the files, so that a change while they are read is noticed the next time.
  const stamp = await stampOf(config)
  const [cert, key] = await Promise.all([readFile(config.cert), readFile(config.key)])
  // Throws if the key is not that of the certificate.
  const context = createSecureContext({ cert, key, minVersion: LEAST_VERSION })
  const names = (config.names ?? namesOf(new X509Certificate(cert))).map((name) => name.toLowerCase())
  return { cert, key, context, names, stamp }
}

/** Names of servers in a certificate. */
function namesOf({ subjectAltName = '' }: X509Certificate): readonly string[] {
  return Array.from(subjectAltName.matchAll(/(?:^|, )DNS:([^,]+)/g), ([, name]) => name!)
}

async function stampOf({ cert, key }: CertificateConfig): Promise<string> {
  const stats = await Promise.all([stat(cert), stat(key)])
  return stats.map(({ mtimeMs, size, ino }) => `${mtimeMs}:${size}:${ino}`).join('|')
}
