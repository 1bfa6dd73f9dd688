-- token: slk_Bp6CGYXbRIfM_alo3sktdQJYVIhDayTmUQf6Co5wWK3d9dIYbTgkyOBx
CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;
CREATE TABLE feed_head (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      floor INTEGER NOT NULL
    ) STRICT;
CREATE TABLE removals (
      kind TEXT NOT NULL,
      key TEXT NOT NULL,
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      removed_at INTEGER NOT NULL,
      PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX removals_by_position ON removals (position);
CREATE INDEX removals_by_time ON removals (removed_at);
CREATE TABLE versions (
      number INTEGER PRIMARY KEY,
      stage TEXT NOT NULL CHECK (stage IN ('draft', 'shadow', 'percent', 'enforce', 'retired')),
      percent REAL NOT NULL,
      based_on INTEGER REFERENCES versions (number),
      replaced INTEGER REFERENCES versions (number),
      enforced_at INTEGER,
      created_at INTEGER NOT NULL,
      created_by TEXT NOT NULL,
      note TEXT,
      settings TEXT NOT NULL,
      position INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE INDEX versions_by_position ON versions (position);
CREATE UNIQUE INDEX versions_enforced ON versions (stage) WHERE stage = 'enforce';
CREATE UNIQUE INDEX versions_candidate ON versions ((CASE WHEN stage IN ('shadow', 'percent') THEN 1 END));
CREATE TABLE rules (
      version INTEGER NOT NULL REFERENCES versions (number),
      place INTEGER NOT NULL,
      name TEXT,
      resource TEXT NOT NULL,
      dimension TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (version, place)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX rules_by_resource ON rules (resource, version);
CREATE TABLE tiers (
      version INTEGER NOT NULL REFERENCES versions (number),
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (version, place)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE exemptions (
      version INTEGER NOT NULL REFERENCES versions (number),
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      resource TEXT,
      dimension TEXT,
      body TEXT NOT NULL,
      PRIMARY KEY (version, place)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE deny_entries (
      version INTEGER NOT NULL REFERENCES versions (number),
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      resource TEXT,
      dimension TEXT,
      body TEXT NOT NULL,
      PRIMARY KEY (version, place)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE domains (
      version INTEGER NOT NULL REFERENCES versions (number),
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (version, place)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE overrides (
      dimension TEXT NOT NULL,
      entity TEXT NOT NULL,
      resource TEXT NOT NULL,
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      changed_by TEXT NOT NULL,
      PRIMARY KEY (dimension, entity, resource)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX overrides_by_position ON overrides (position);
CREATE TABLE members (
      dimension TEXT NOT NULL,
      entity TEXT NOT NULL,
      tier TEXT NOT NULL,
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      changed_by TEXT NOT NULL,
      PRIMARY KEY (dimension, entity)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_position ON members (position);
CREATE TABLE blocks (
      dimension TEXT NOT NULL,
      entity TEXT NOT NULL,
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      changed_by TEXT NOT NULL, forgotten_at INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (dimension, entity)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_by_position ON blocks (position);
CREATE TABLE incident (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      changed_by TEXT NOT NULL
    ) STRICT;
CREATE TABLE api_keys (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      secret_hash TEXT NOT NULL,
      body TEXT NOT NULL,
      position INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      changed_by TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_position ON api_keys (position);
CREATE TABLE audit (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      at INTEGER NOT NULL,
      author TEXT NOT NULL,
      note TEXT,
      action TEXT NOT NULL,
      target TEXT NOT NULL,
      before TEXT,
      after TEXT
    ) STRICT;
CREATE INDEX audit_by_author ON audit (author, number);
CREATE INDEX audit_by_action ON audit (action, number);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX blocks_by_end ON blocks (forgotten_at);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE number_leases (
      name TEXT NOT NULL,
      number INTEGER NOT NULL,
      holder TEXT NOT NULL,
      until INTEGER NOT NULL,
      PRIMARY KEY (name, number)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE rollups (
      step_ms INTEGER NOT NULL,
      at INTEGER NOT NULL,
      source TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (step_ms, at, source)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "schema_migrations" VALUES (1, 1794992514652);
INSERT INTO "schema_migrations" VALUES (2, 1794992514676);
INSERT INTO "schema_migrations" VALUES (3, 1794992514677);
INSERT INTO "schema_migrations" VALUES (4, 1794992514678);
INSERT INTO "feed_head" VALUES (1, 10, 0);
INSERT INTO "versions" VALUES (1, 'retired', 0.0, NULL, NULL, 1794992514704, 1794992514704, 'first start', NULL, '{"rules":[]}', 6);
INSERT INTO "versions" VALUES (2, 'enforce', 0.0, 1, 1, 1794992516699, 1794992516681, 'first', NULL, '{"rules":[],"tiers":[]}', 5);
INSERT INTO "rules" VALUES (1, 0, 'default-user', '*', 'user', '{"name":"default-user","resource":"*","dimension":"user","limit":100,"window":"1m"}');
INSERT INTO "rules" VALUES (1, 1, 'default-ip', '*', 'ip', '{"name":"default-ip","resource":"*","dimension":"ip","limit":100,"window":"1s"}');
INSERT INTO "rules" VALUES (2, 0, 'all', '*', 'user', '{"name":"all","resource":"*","dimension":"user","limit":100,"window":"1m"}');
INSERT INTO "rules" VALUES (2, 1, 'orders', '/orders/:id', 'user', '{"name":"orders","resource":"/orders/:id","dimension":"user","limit":10,"window":"1m"}');
INSERT INTO "tiers" VALUES (2, 0, 'premium', '{"name":"premium","multiplier":5}');
INSERT INTO "overrides" VALUES ('user', 'ada', '/orders/:any', '{"dimension":"user","entity":"ada","resource":"/orders/:id","terms":{"limit":500}}', 7, 1794992518398, 'first');
INSERT INTO "members" VALUES ('user', 'bob', 'premium', '{"dimension":"user","entity":"bob","tier":"premium"}', 8, 1794992520549, 'first');
INSERT INTO "blocks" VALUES ('user', 'mallory', '{"dimension":"user","entity":"mallory","until":2109488522141,"forgottenAt":2109488522141,"reason":"kept","strikes":1}', 9, 1794992522141, 'first', 2109488522141);
INSERT INTO "incident" VALUES (1, '{"active":false}', 1, 0, 'sluice');
INSERT INTO "api_keys" VALUES ('slk_30PpkNqF8kGb', 'dashboard', 'a7e4d9366046f2912827d188f7c2065051de1e040ce787c1e7a62eea93fcaf04', '{"id":"slk_30PpkNqF8kGb","name":"dashboard","role":"viewer","createdAt":1794992524176}', 10, 1794992524176, 'first');
INSERT INTO "api_keys" VALUES ('slk_Bp6CGYXbRIfM', 'first', '2d1ce541c259b798745765c34cce54ecdb510d9e7634c356a3994b1aa002477d', '{"id":"slk_Bp6CGYXbRIfM","name":"first","role":"admin","createdAt":1794992514749}', 3, 1794992514749, 'first start');
INSERT INTO "audit" VALUES (1, 1794992514704, 'first start', NULL, 'version.edit', 'version 1', NULL, '{"number":1,"stage":"enforce","percent":0,"createdAt":1794992514704,"createdBy":"first start","revision":2}');
INSERT INTO "audit" VALUES (2, 1794992514749, 'first start', NULL, 'api-key.create', 'slk_Bp6CGYXbRIfM', NULL, '{"id":"slk_Bp6CGYXbRIfM","name":"first","role":"admin","createdAt":1794992514749}');
INSERT INTO "audit" VALUES (3, 1794992516681, 'first', NULL, 'version.create', 'version 2', NULL, '{"number":2,"stage":"draft","percent":0,"basedOn":1,"createdAt":1794992516681,"createdBy":"first","revision":4}');
INSERT INTO "audit" VALUES (4, 1794992516699, 'first', NULL, 'version.stage', 'version 2', '{"number":2,"stage":"draft","percent":0,"basedOn":1,"createdAt":1794992516681,"createdBy":"first","revision":4}', '{"number":2,"stage":"enforce","percent":0,"basedOn":1,"createdAt":1794992516681,"createdBy":"first","revision":5}');
INSERT INTO "audit" VALUES (5, 1794992518398, 'first', NULL, 'override.put', 'user:ada /orders/:id', NULL, '{"dimension":"user","entity":"ada","resource":"/orders/:id","terms":{"limit":500}}');
INSERT INTO "audit" VALUES (6, 1794992520549, 'first', NULL, 'member.put', 'user:bob', NULL, '{"dimension":"user","entity":"bob","tier":"premium"}');
INSERT INTO "audit" VALUES (7, 1794992522141, 'first', NULL, 'block.put', 'user:mallory', NULL, '{"dimension":"user","entity":"mallory","until":2109488522141,"forgottenAt":2109488522141,"reason":"kept","strikes":1}');
INSERT INTO "audit" VALUES (8, 1794992524176, 'first', NULL, 'api-key.create', 'slk_30PpkNqF8kGb', NULL, '{"id":"slk_30PpkNqF8kGb","name":"dashboard","role":"viewer","createdAt":1794992524176}');
INSERT INTO "secrets" VALUES ('signing', '6fbad86d36d7c10877191ec10803df16cd166b5b6e8eee0151a3b08be220536a');
PRAGMA user_version = 0;
