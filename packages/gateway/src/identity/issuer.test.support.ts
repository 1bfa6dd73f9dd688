import { exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'

/** An issuer of tokens: its keys, and how its key set is read. */
export interface TestIssuer {
  /** The key set, as the issuer publishes it. */
  readonly keySet: () => string
  /** Publishes another key besides, or in place of the others. */
  addKey(kid: string): Promise<void>
  removeKey(kid: string): void
  /** The public key in PEM, for an attempt to sign with it. */
  publicPem(kid: string): Promise<string>
  sign(claims: JWTPayload, options?: { readonly kid?: string; readonly omitKid?: boolean }): Promise<string>
}

/** An issuer with the key `one`. */
export async function testIssuer(): Promise<TestIssuer> {
  const pairs = new Map<string, Awaited<ReturnType<typeof generateKeyPair>>>()
  const published = new Map<string, JWK>()
  const addKey = async (kid: string): Promise<void> => {
    const pair = await generateKeyPair('ES256', { extractable: true })
    pairs.set(kid, pair)
    published.set(kid, { ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256', use: 'sig' })
  }
  await addKey('one')
  return {
    keySet: () => JSON.stringify({ keys: [...published.values()] }),
    addKey,
    removeKey: (kid) => void published.delete(kid),
    publicPem: (kid) => exportSPKI(pairs.get(kid)!.publicKey),
    sign: (claims, { kid = 'one', omitKid = false } = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', ...(!omitKid && { kid }) })
        .sign(pairs.get(kid)!.privateKey),
  }
}
