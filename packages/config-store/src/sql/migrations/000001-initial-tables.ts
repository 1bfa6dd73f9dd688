import type { Migration, SqlForms } from './migration.ts'

/** The initial schema. */
export const migration000001: Migration = {
  number: 1,
  statements: (forms) => [...feedTables(forms), ...versionTables(forms), ...entryTables(forms), ...accessTables(forms)],
}

/**
 * `feed_head` has one row. Every writer first takes the next position from it, and so waits for the previous writer:
 * positions increase in commit order. Removals up to `floor` have been deleted.
 */
function feedTables({ whole, text, name, end, endByKey }: SqlForms): readonly string[] {
  return [
    `CREATE TABLE feed_head (
      id ${whole} PRIMARY KEY CHECK (id = 1),
      position ${whole} NOT NULL,
      floor ${whole} NOT NULL
    )${end}`,
    'INSERT INTO feed_head (id, position, floor) VALUES (1, 1, 0)',
    `CREATE TABLE removals (
      kind ${name} NOT NULL,
      key ${name} NOT NULL,
      body ${text} NOT NULL,
      position ${whole} NOT NULL,
      removed_at ${whole} NOT NULL,
      PRIMARY KEY (kind, key)
    )${endByKey}`,
    'CREATE INDEX removals_by_position ON removals (position)',
    'CREATE INDEX removals_by_time ON removals (removed_at)',
  ]
}

/** A rule set is spread over tables, to find the versions that have a rule for a resource. */
function versionTables(forms: SqlForms): readonly string[] {
  const { whole, real, text, name, endByKey } = forms
  const parts = (table: string, columns: readonly string[]): string => `CREATE TABLE ${table} (
      version ${whole} NOT NULL REFERENCES versions (number),
      place ${whole} NOT NULL,
      ${columns.map((column) => `${column},`).join('\n      ')}
      body ${text} NOT NULL,
      PRIMARY KEY (version, place)
    )${endByKey}`
  const matched = [`name ${name} NOT NULL`, `resource ${name}`, `dimension ${name}`]
  return [
    `CREATE TABLE versions (
      number ${whole} PRIMARY KEY,
      stage ${name} NOT NULL CHECK (stage IN ('draft', 'shadow', 'percent', 'enforce', 'retired')),
      percent ${real} NOT NULL,
      based_on ${whole} REFERENCES versions (number),
      replaced ${whole} REFERENCES versions (number),
      enforced_at ${whole},
      created_at ${whole} NOT NULL,
      created_by ${name} NOT NULL,
      note ${text},
      settings ${text} NOT NULL,
      position ${whole} NOT NULL
    )${endByKey}`,
    'CREATE INDEX versions_by_position ON versions (position)',
    "CREATE UNIQUE INDEX versions_enforced ON versions (stage) WHERE stage = 'enforce'",
    `CREATE UNIQUE INDEX versions_candidate ON versions ((CASE WHEN stage IN ('shadow', 'percent') THEN 1 END))`,
    parts('rules', [`name ${name}`, `resource ${name} NOT NULL`, `dimension ${name} NOT NULL`]),
    'CREATE INDEX rules_by_resource ON rules (resource, version)',
    parts('tiers', [`name ${name} NOT NULL`]),
    parts('exemptions', matched),
    parts('deny_entries', matched),
    parts('domains', [`name ${name} NOT NULL`]),
  ]
}

/** `position` is that of the last change: the revision of the row, and its position in the feed. */
function entryTables({ whole, text, name, end, endByKey }: SqlForms): readonly string[] {
  const stored = `body ${text} NOT NULL,
      position ${whole} NOT NULL,
      changed_at ${whole} NOT NULL,
      changed_by ${name} NOT NULL`
  return [
    `CREATE TABLE overrides (
      dimension ${name} NOT NULL,
      entity ${name} NOT NULL,
      resource ${name} NOT NULL,
      ${stored},
      PRIMARY KEY (dimension, entity, resource)
    )${endByKey}`,
    'CREATE INDEX overrides_by_position ON overrides (position)',
    `CREATE TABLE members (
      dimension ${name} NOT NULL,
      entity ${name} NOT NULL,
      tier ${name} NOT NULL,
      ${stored},
      PRIMARY KEY (dimension, entity)
    )${endByKey}`,
    'CREATE INDEX members_by_position ON members (position)',
    `CREATE TABLE blocks (
      dimension ${name} NOT NULL,
      entity ${name} NOT NULL,
      ${stored},
      PRIMARY KEY (dimension, entity)
    )${endByKey}`,
    'CREATE INDEX blocks_by_position ON blocks (position)',
    `CREATE TABLE incident (
      id ${whole} PRIMARY KEY CHECK (id = 1),
      ${stored}
    )${end}`,
    `INSERT INTO incident (id, body, position, changed_at, changed_by) VALUES (1, '{"active":false}', 1, 0, 'sluice')`,
  ]
}

/** Only a hash of the secret of an API key is stored. `audit` is append-only. */
function accessTables({ whole, text, name, counter, end, endByKey }: SqlForms): readonly string[] {
  return [
    `CREATE TABLE api_keys (
      id ${name} PRIMARY KEY,
      name ${name} NOT NULL,
      secret_hash ${name} NOT NULL,
      body ${text} NOT NULL,
      position ${whole} NOT NULL,
      changed_at ${whole} NOT NULL,
      changed_by ${name} NOT NULL
    )${endByKey}`,
    'CREATE INDEX api_keys_by_position ON api_keys (position)',
    `CREATE TABLE audit (
      number ${counter},
      at ${whole} NOT NULL,
      author ${name} NOT NULL,
      note ${text},
      action ${name} NOT NULL,
      target ${text} NOT NULL,
      before ${text},
      after ${text}
    )${end}`,
    'CREATE INDEX audit_by_author ON audit (author, number)',
    'CREATE INDEX audit_by_action ON audit (action, number)',
    'CREATE INDEX audit_by_time ON audit (at)',
  ]
}
