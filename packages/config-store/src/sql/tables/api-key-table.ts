import { createHash, timingSafeEqual } from 'node:crypto'
import { SluiceError } from '@sluice/core'
import type { Platform } from '../../clock-and-random.ts'
import type { Author, Page, PageRequest } from '../../config-entries.ts'
import type { ApiKey, ApiKeyRole, ApiKeyTable, IssuedApiKey, NewApiKey } from '../../config-store.ts'
import type { ConfigChange, ConfigWriter } from '../config-writer.ts'
import type { SqlDriver, SqlSession } from '../sql-driver.ts'
import { pageLimit, pageOf, pageStart } from '../sql-page.ts'
import { encodeKey, encodeText } from '../text-encoding.ts'

const ROLES: readonly ApiKeyRole[] = ['admin', 'editor', 'viewer', 'none']
const LONGEST_NAME = 200

/** A row of the table of API keys. The body is the key without its secret. */
export interface ApiKeyRow {
  readonly id: string
  readonly secret_hash: string
  readonly body: string
}

/** API keys. */
export class SqlApiKeyTable implements ApiKeyTable {
  readonly #driver: SqlDriver
  readonly #writer: ConfigWriter
  readonly #platform: Pick<Platform, 'nowMs' | 'randomBytes'>

  constructor(driver: SqlDriver, writer: ConfigWriter, platform: Pick<Platform, 'nowMs' | 'randomBytes'>) {
    this.#driver = driver
    this.#writer = writer
    this.#platform = platform
  }

  async create(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey> {
    checkNewKey(key)
    const made = this.#tokenOf(token)
    return await this.#writer.change(author, (change) => this.#createIn(change, key, made))
  }

  async createFirst(key: NewApiKey, author: Author, token?: string): Promise<IssuedApiKey | undefined> {
    checkNewKey(key)
    const made = this.#tokenOf(token)
    // Read outside a write transaction: there nearly always is one.
    if (await hasAny(this.#driver)) return undefined
    return await this.#writer.change(author, async (change) =>
      (await hasAny(change.transaction)) ? undefined : await this.#createIn(change, key, made),
    )
  }

  async verify(token: string): Promise<ApiKey | undefined> {
    const given = typeof token === 'string' ? readToken(token) : undefined
    if (given === undefined) return undefined
    const row = await read(this.#driver, given.id)
    if (!isSameHash(given.secretHash, row?.secret_hash) || row === undefined) return undefined
    const key = apiKeyOf(row)
    return hasEnded(key, this.#platform.nowMs()) ? undefined : key
  }

  async rotate(id: string, author: Author, overlapMs: number): Promise<IssuedApiKey> {
    if (!(overlapMs >= 0 && Number.isFinite(overlapMs))) {
      throw invalid('"overlapMs" of a rotation cannot be used', overlapMs, 'milliseconds, 0 or more')
    }
    return await this.#writer.change(author, async (change) => {
      const old = await existing(change.transaction, id)
      if (hasEnded(old, change.at)) throw hasEndedAlready(old)
      const { name, role, tenant, tier, expiresAt, createdAt } = old
      const issued = await this.#issue(
        change,
        {
          name,
          role,
          ...(tenant === undefined ? {} : { tenant }),
          ...(tier === undefined ? {} : { tier }),
          // The new key has the same lifetime as the old one.
          ...(expiresAt === undefined ? {} : { expiresAt: change.at + expiresAt - createdAt }),
          rotatedFrom: id,
        },
        this.#tokenOf(undefined),
      )
      const endsAt = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, change.at + overlapMs)
      await update(change, { ...old, expiresAt: endsAt }, await change.takePositions(1))
      await change.note([{ action: 'api-key.rotate', target: id, before: old, after: issued.apiKey }])
      return issued
    })
  }

  async revoke(id: string, author: Author): Promise<boolean> {
    const isThere = (await read(this.#driver, id)) !== undefined
    if (!isThere) return false
    return await this.#writer.change(author, async (change) => {
      const before = await existing(change.transaction, id)
      if (hasEnded(before, change.at)) return false
      if (mayAdminister(before, change.at) && !(await isReplaceable(change, before))) throw lastAdmin(before)
      const after = { ...before, revokedAt: change.at }
      await update(change, after, change.position)
      await change.note([{ action: 'api-key.revoke', target: id, before, after }])
      return true
    })
  }

  async list(page: PageRequest = {}): Promise<Page<ApiKey>> {
    const limit = pageLimit(page)
    const [after = ''] = pageStart<string>(page, ['string']) ?? []
    const sql = 'SELECT id, secret_hash, body FROM api_keys WHERE id > ? ORDER BY id LIMIT ?'
    const rows = await this.#driver.query<ApiKeyRow>(sql, [after, limit + 1])
    return pageOf(rows, limit, { itemOf: apiKeyOf, cursorOf: (row) => [row.id] })
  }

  #tokenOf(token: string | undefined): NewToken {
    if (token === undefined) return makeToken((count) => this.#platform.randomBytes(count))
    const parsed = readToken(token)
    if (parsed === undefined) {
      throw invalid('the token of an API key cannot be used', '(hidden)', 'slk_, 12 letters or digits, _, and 43 more')
    }
    return { ...parsed, token }
  }

  async #createIn(change: ConfigChange, key: NewApiKey, made: NewToken): Promise<IssuedApiKey> {
    const issued = await this.#issue(change, { ...key, rotatedFrom: undefined }, made)
    await change.note([{ action: 'api-key.create', target: issued.apiKey.id, after: issued.apiKey }])
    return issued
  }

  async #issue(
    change: ConfigChange,
    key: NewApiKey & Pick<ApiKey, 'rotatedFrom'>,
    { id, token, secretHash }: NewToken,
  ): Promise<IssuedApiKey> {
    const { name, role, tenant, tier, expiresAt, rotatedFrom } = key
    const apiKey = { id, name, role, tenant, tier, createdAt: change.at, expiresAt, revokedAt: undefined, rotatedFrom }
    await change.transaction.query(
      'INSERT INTO api_keys (id, name, secret_hash, body, position, changed_at, changed_by) VALUES (?, ?, ?, ?, ?, ' +
        '?, ?)',
      [
        id,
        encodeKey(name),
        secretHash,
        JSON.stringify(apiKey),
        change.position,
        change.at,
        encodeText(change.author.name),
      ],
    )
    return { apiKey, token }
  }
}

/** The key of a row, with all its fields. */
export function apiKeyOf({ body }: Pick<ApiKeyRow, 'body'>): ApiKey {
  const { id, name, role, tenant, tier, createdAt, expiresAt, revokedAt, rotatedFrom } = JSON.parse(body) as ApiKey
  return { id, name, role, tenant, tier, createdAt, expiresAt, revokedAt, rotatedFrom }
}

async function read(session: SqlSession, id: string): Promise<ApiKeyRow | undefined> {
  const sql = 'SELECT id, secret_hash, body FROM api_keys WHERE id = ?'
  return (await session.query<ApiKeyRow>(sql, [encodeKey(id)]))[0]
}

async function hasAny(session: SqlSession): Promise<boolean> {
  return (await session.query('SELECT id FROM api_keys LIMIT 1')).length > 0
}

/** Whether another admin key lasts at least as long as this one. */
async function isReplaceable({ transaction, at }: ConfigChange, key: ApiKey): Promise<boolean> {
  // Few of many keys have this role. Quotes inside another field would be escaped.
  const sql = `SELECT id, secret_hash, body FROM api_keys WHERE body LIKE '%"role":"admin"%'`
  const others = (await transaction.query<ApiKeyRow>(sql)).map(apiKeyOf).filter(({ id }) => id !== key.id)
  return others.some((other) => mayAdminister(other, at) && endOf(other) >= endOf(key))
}

/** A key of a tenant cannot administer the whole service. */
function mayAdminister(key: ApiKey, nowMs: number): boolean {
  return key.role === 'admin' && key.tenant === undefined && !hasEnded(key, nowMs)
}

function endOf({ expiresAt }: ApiKey): number {
  return expiresAt ?? Number.POSITIVE_INFINITY
}

async function existing(session: SqlSession, id: string): Promise<ApiKey> {
  const row = await read(session, id)
  if (row !== undefined) return apiKeyOf(row)
  throw new SluiceError('SLUICE_NOT_FOUND', {
    problem: 'there is no such API key',
    expected: 'the id of a key, slk_ and 12 characters',
  })
}

async function update({ transaction, at, author }: ConfigChange, key: ApiKey, position: number): Promise<void> {
  await transaction.query('UPDATE api_keys SET body = ?, position = ?, changed_at = ?, changed_by = ? WHERE id = ?', [
    JSON.stringify(key),
    position,
    at,
    encodeText(author.name),
    key.id,
  ])
}

function hasEnded({ revokedAt, expiresAt }: ApiKey, nowMs: number): boolean {
  return revokedAt !== undefined || (expiresAt !== undefined && expiresAt <= nowMs)
}

function hasEndedAlready({ id }: ApiKey): SluiceError {
  return new SluiceError('SLUICE_CONFLICT', {
    problem: `the API key ${id} has expired or was revoked, so it cannot be rotated`,
    action: 'Create a new one.',
  })
}

function lastAdmin({ id, expiresAt }: ApiKey): SluiceError {
  const lasting = expiresAt === undefined ? 'that does not expire' : 'that lasts as long'
  return new SluiceError('SLUICE_CONFLICT', {
    problem: `the API key ${id} is the last with the role admin ${lasting}: without it, no key could be created`,
    action: 'Create another one first, or rotate it.',
  })
}

function checkNewKey({ name, role, tenant, tier, expiresAt }: NewApiKey): void {
  if (typeof name !== 'string' || name.length === 0 || name.length > LONGEST_NAME) {
    throw invalid('the name of an API key cannot be used', name, `a string of 1 to ${LONGEST_NAME} characters`)
  }
  if (!ROLES.includes(role)) throw invalid('the role of an API key is unknown', role, ROLES.join(', '))
  for (const [part, value] of Object.entries({ tenant, tier })) {
    if (value !== undefined && (typeof value !== 'string' || value.length === 0)) {
      throw invalid(`"${part}" of an API key cannot be used`, value, 'a non-empty string')
    }
  }
  if (expiresAt !== undefined && !Number.isFinite(expiresAt)) {
    throw invalid('"expiresAt" of an API key cannot be used', expiresAt, 'milliseconds since 1970')
  }
}

function invalid(problem: string, received: unknown, expected: string): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', { problem, received, expected })
}

const ID_BYTES = 9
const SECRET_BYTES = 32
const ID_LENGTH = 12
const SECRET_LENGTH = 43
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const TOKEN = new RegExp(`^(slk_[0-9A-Za-z]{${ID_LENGTH}})_([0-9A-Za-z]{${SECRET_LENGTH}})$`)

/** Compared with if there is no such key, so that the duration is the same. */
const UNKNOWN_KEY_HASH = hashSecret('')

/** A newly created token, and what is stored of it. */
interface NewToken {
  /** `slk_<id>`, public. */
  readonly id: string
  /** `slk_<id>_<secret>`, shown once. */
  readonly token: string
  /** SHA-256 of the secret in hexadecimal. */
  readonly secretHash: string
}

/** Creates a token from random bytes. Its secret has 256 bits. */
function makeToken(randomBytes: (count: number) => Uint8Array): NewToken {
  const id = `slk_${digitsOf(randomBytes(ID_BYTES), ID_LENGTH)}`
  const secret = digitsOf(randomBytes(SECRET_BYTES), SECRET_LENGTH)
  return { id, token: `${id}_${secret}`, secretHash: hashSecret(secret) }
}

/** The id of a token and the hash of its secret. Undefined for anything that is not a token. */
function readToken(token: string): Pick<NewToken, 'id' | 'secretHash'> | undefined {
  const [, id, secret] = TOKEN.exec(token) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secretHash: hashSecret(secret) }
}

/** Compares two hashes of {@link readToken} in constant time. */
function isSameHash(given: string, kept: string | undefined): boolean {
  const isEqual = timingSafeEqual(Buffer.from(given, 'hex'), Buffer.from(kept ?? UNKNOWN_KEY_HASH, 'hex'))
  return isEqual && kept !== undefined
}

function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Encodes bytes in base 62, which needs no escaping. */
function digitsOf(bytes: Uint8Array, length: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  while (text.length < length) {
    text = DIGITS[Number(rest % 62n)] + text
    rest /= 62n
  }
  return text
}
