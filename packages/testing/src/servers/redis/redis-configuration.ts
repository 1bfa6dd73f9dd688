import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LOOPBACK } from '../process/free-port.ts'
import { missingProgram } from '../process/server-process.ts'

/** Users and configuration of a server. */
export interface RedisConfigurationOptions {
  /**
   * Directives of redis.conf: the name and the rest of its line, quoted where redis.conf requires it. They override the
   * built-in ones. An empty string is an empty value, as in `save: ''`. A name may have several words.
   */
  readonly config?: Readonly<Record<string, string>>
  /** The password of the default user. */
  readonly password?: string
  /** A user with all permissions. Without `password`, the default user is disabled: every client must name a user. */
  readonly aclUser?: { readonly name: string; readonly password: string }
}

/** Where a server listens, and where it stores its files. */
export interface RedisPlace {
  readonly port: number
  readonly folder: string
  /** With one, the port speaks TLS only. */
  readonly certificate?: SelfSignedCertificate | undefined
}

/** The text of a redis.conf: on 127.0.0.1, nothing stored on disk, log to standard output. */
export function redisConfiguration(options: RedisConfigurationOptions, place: RedisPlace): string {
  const directives = {
    bind: LOOPBACK,
    'protected-mode': 'no',
    ...listening(place),
    dir: quote(place.folder),
    daemonize: 'no',
    logfile: '',
    'always-show-logo': 'no',
    save: '',
    appendonly: 'no',
    // Through a file, so that a replica that says it is connected gets every write: through a socket, the primary holds
    // them back until the replica reports, up to a second later.
    'repl-diskless-sync': 'no',
    // DEBUG and the like, for tests: nothing else can reach it.
    'enable-debug-command': 'local',
    ...users(options),
    ...options.config,
  }
  const lines = Object.entries(directives).map(([name, value]) => `${name} ${value === '' ? '""' : value}`)
  return `${lines.join('\n')}\n`
}

function listening({ port, certificate }: RedisPlace): Record<string, string> {
  if (certificate === undefined) return { port: String(port) }
  return {
    port: '0',
    'tls-port': String(port),
    'tls-cert-file': quote(certificate.certificateFile),
    'tls-key-file': quote(certificate.keyFile),
    'tls-ca-cert-file': quote(certificate.certificateFile),
    'tls-auth-clients': 'no',
  }
}

function users({ password, aclUser }: RedisConfigurationOptions): Record<string, string> {
  return {
    ...(password === undefined ? {} : { requirepass: quote(password) }),
    ...(aclUser === undefined
      ? {}
      : { [`user ${quote(aclUser.name)}`]: `on ${quote(`>${aclUser.password}`)} ~* &* +@all` }),
    ...(aclUser !== undefined && password === undefined ? { 'user default': 'off' } : {}),
  }
}

/** In the quotes of redis.conf, whose escapes for printable characters are those of JSON. */
function quote(text: string): string {
  return JSON.stringify(text)
}

const run = promisify(execFile)

/** A certificate for localhost and 127.0.0.1 that is its own authority, good for two days. */
export interface SelfSignedCertificate {
  /** The certificate in PEM, which clients must trust. */
  readonly ca: string
  readonly certificateFile: string
  readonly keyFile: string
}

/** Creates a certificate and its key, in files of this folder. Needs the program `openssl`. */
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
