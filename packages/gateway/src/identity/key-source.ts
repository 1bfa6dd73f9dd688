import { readFile } from 'node:fs/promises'
import type { Timers } from '@sluice/core'
import { request } from 'undici'

/** Longer key sets are not read. */
const LONGEST_BYTES = 1024 * 1024

/** A key set that takes longer counts as unavailable. */
const TIMEOUT_MS = 5000

/** Whether a key set comes over the network. */
export function isKeySetUrl(source: string): boolean {
  return /^https?:\/\//i.test(source)
}

/**
 * Reads a key set from a URL or a file. Redirects are not followed: the URL in the configuration is the one trusted.
 */
export async function readKeySource(source: string, timers: Timers): Promise<string> {
  if (!isKeySetUrl(source)) return await readFile(source, 'utf8')
  const abort = new AbortController()
  const cancel = timers.schedule(TIMEOUT_MS, () => abort.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)))
  try {
    return await fetchText(source, abort.signal)
  } catch (cause) {
    const reason = abort.signal.aborted ? (abort.signal.reason as Error) : (cause as Error)
    throw new Error(`the key set cannot be loaded: ${reason.message || (reason as { code?: string }).code}`, { cause })
  } finally {
    cancel()
  }
}

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  // Keys are loaded every few minutes: no connection is kept for them.
  const { statusCode, body } = await request(url, { signal, reset: true, headers: { accept: 'application/json' } })
  if (statusCode !== 200) {
    await body.dump().catch(() => undefined)
    throw new Error(`the answer has status ${statusCode}`)
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > LONGEST_BYTES) throw new Error(`the answer is longer than ${LONGEST_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
