import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** Takes the problems of files. */
export interface FileProblems {
  /** Folder that relative paths begin in. */
  readonly folder: string
  add(path: string, received: string, expected: string): void
}

/** Largest file that a configuration may name: what is larger is not what was meant. */
const LARGEST_BYTES = 4_194_304

/** The body of denials that stands in a file begins so. */
const FILE_PREFIX = 'file:'

/** The path of the file that a string such as `file:pages/busy.html` names; undefined for another text. */
export function namedFile(text: string, folder: string): string | undefined {
  return text.startsWith(FILE_PREFIX) ? resolve(folder, text.slice(FILE_PREFIX.length)) : undefined
}

/** Whether a key set is fetched; else it is the path of a file. */
export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

/** The content of a file, or undefined after its problem was added. `place`: where the configuration names it. */
export function readNamedFile(problems: FileProblems, file: string, place: string): Buffer | undefined {
  const path = resolve(problems.folder, file)
  try {
    const { size } = statSync(path)
    if (size > LARGEST_BYTES) {
      problems.add(place, `${size} bytes long (${path})`, `a file of at most ${LARGEST_BYTES} bytes`)
      return undefined
    }
    return readFileSync(path)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : (error as Error).message
    problems.add(place, `a file that cannot be read (${path}: ${reason})`, 'a file that exists and can be read')
    return undefined
  }
}

/** Checks a certificate and its key: both can be used, and belong to each other. */
export function checkCertificate(
  problems: FileProblems,
  { cert, key }: { readonly cert: string; readonly key: string },
  place: string,
): void {
  const certBytes = readNamedFile(problems, cert, `${place}/cert`)
  const keyBytes = readNamedFile(problems, key, `${place}/key`)
  const certificate = certBytes && certificateIn(certBytes)
  if (certBytes !== undefined && certificate === undefined) {
    problems.add(`${place}/cert`, `not a certificate (${cert})`, 'a certificate in PEM')
  }
  if (keyBytes === undefined) return
  try {
    const privateKey = createPrivateKey(keyBytes)
    if (certificate !== undefined && !certificate.checkPrivateKey(privateKey)) {
      problems.add(`${place}/key`, `the key of another certificate (${key})`, `the key that belongs to ${cert}`)
    }
  } catch {
    problems.add(`${place}/key`, `not a private key (${key})`, 'a private key in PEM, without a passphrase')
  }
}

/** Checks a file with the certificates of authorities. */
export function checkAuthorities(problems: FileProblems, file: string, place: string): void {
  const bytes = readNamedFile(problems, file, place)
  if (bytes === undefined || certificateIn(bytes) !== undefined) return
  problems.add(place, `not a certificate (${file})`, 'certificates in PEM')
}

/** Checks where a key set comes from. What a URL answers is not known yet. */
export function checkKeySet(problems: FileProblems, source: string, place: string): void {
  if (isUrl(source)) {
    if (!URL.canParse(source)) problems.add(place, JSON.stringify(source), 'a URL, or the path of a file')
    return
  }
  const bytes = readNamedFile(problems, source, place)
  if (bytes === undefined) return
  if (!hasKeys(bytes)) {
    problems.add(place, `not a key set (${source})`, 'a JSON Web Key Set such as { "keys": [...] } with a key')
  }
}

function certificateIn(bytes: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(bytes)
  } catch {
    return undefined
  }
}

function hasKeys(bytes: Buffer): boolean {
  try {
    const { keys } = JSON.parse(bytes.toString('utf8')) as { readonly keys?: unknown }
    return Array.isArray(keys) && keys.length > 0
  } catch {
    return false
  }
}
