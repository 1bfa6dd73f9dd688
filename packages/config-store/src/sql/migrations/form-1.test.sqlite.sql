-- A SQLite database of form 1 with rows in it, as it was written then.
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
CREATE TABLE rules (
  version INTEGER NOT NULL REFERENCES versions (number),
  place INTEGER NOT NULL,
  name TEXT,
  resource TEXT NOT NULL,
  dimension TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (version, place)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE blocks (
  dimension TEXT NOT NULL,
  entity TEXT NOT NULL,
  body TEXT NOT NULL,
  position INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (dimension, entity)
) STRICT, WITHOUT ROWID;
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
INSERT INTO schema_migrations (number, applied_at) VALUES (1, 1700000000000);
INSERT INTO feed_head (id, position, floor) VALUES (1, 14, 0);
INSERT INTO removals (kind, key, body, position, removed_at) VALUES ('override', '{"dimension":"user","entity":"gone","resource":"*"}', '{"dimension":"user","entity":"gone","resource":"*"}', 10, 1700000000000);
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, position) VALUES (1, 'retired', 0, NULL, NULL, 1700000000000, 1700000000000, 'alice', 'first', '{"rules":[],"tiers":[],"regions":{"US":2}}', 4);
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, position) VALUES (2, 'enforce', 0, 1, 1, 1700000000000, 1700000000000, 'alice', 'first', '{"rules":[],"tiers":[],"regions":{"US":2},"exemptions":[]}', 3);
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, position) VALUES (3, 'percent', 12.5, 2, NULL, NULL, 1700000000000, 'bob', NULL, '{"rules":[]}', 6);
INSERT INTO rules (version, place, name, resource, dimension, body) VALUES (1, 0, NULL, '/orders', 'user', '{"resource":"/orders","dimension":"user","limit":10,"window":"1m"}');
INSERT INTO rules (version, place, name, resource, dimension, body) VALUES (2, 0, NULL, '/orders', 'user', '{"resource":"/orders","dimension":"user","limit":10,"window":"1m"}');
INSERT INTO tiers (version, place, name, body) VALUES (1, 0, 'premium', '{"name":"premium","multiplier":10}');
INSERT INTO tiers (version, place, name, body) VALUES (2, 0, 'premium', '{"name":"premium","multiplier":10}');
INSERT INTO exemptions (version, place, name, resource, dimension, body) VALUES (2, 0, 'health', '/health', NULL, '{"name":"health","match":{"resource":"/health"}}');
INSERT INTO overrides (dimension, entity, resource, body, position, changed_at, changed_by) VALUES ('user', 'a\u0000b', '*', '{"dimension":"user","entity":"a\u0000b","resource":"*","terms":{"multiplier":2}}', 8, 1700000000000, 'alice');
INSERT INTO overrides (dimension, entity, resource, body, position, changed_at, changed_by) VALUES ('user', 'u1', '/orders', '{"dimension":"user","entity":"u1","resource":"/orders","terms":{"limit":50},"expiresAt":1800000000000}', 7, 1700000000000, 'alice');
INSERT INTO members (dimension, entity, tier, body, position, changed_at, changed_by) VALUES ('tenant', 't1', 'premium', '{"dimension":"tenant","entity":"t1","tier":"premium"}', 11, 1700000000000, 'alice');
INSERT INTO blocks (dimension, entity, body, position, changed_at, changed_by) VALUES ('ip', '10.0.0.1', '{"dimension":"ip","entity":"10.0.0.1","until":1700000060000,"strikes":1,"forgottenAt":1700086400000.5}', 14, 1700000000000, 'alice');
INSERT INTO incident (id, body, position, changed_at, changed_by) VALUES (1, '{"active":true}', 12, 1700000000000, 'alice');
INSERT INTO api_keys (id, name, secret_hash, body, position, changed_at, changed_by) VALUES ('slk_3DBmkKOLiL8D', 'ci', '24019a6ecc936769c50ab7ac42108d12f0587843fd4b54387af345d4e57dc3c3', '{"id":"slk_3DBmkKOLiL8D","name":"ci","role":"editor","createdAt":1700000000000}', 13, 1700000000000, 'alice');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (1, 1700000000000, 'alice', 'first', 'version.edit', 'version 1', NULL, '{"number":1,"stage":"enforce","percent":0,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":2}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (2, 1700000000000, 'alice', 'first', 'version.edit', 'version 2', '{"number":1,"stage":"enforce","percent":0,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":2}', '{"number":2,"stage":"enforce","percent":0,"basedOn":1,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":3}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (3, 1700000000000, 'bob', NULL, 'version.create', 'version 3', NULL, '{"number":3,"stage":"draft","percent":0,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":5}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (4, 1700000000000, 'bob', NULL, 'version.stage', 'version 3', '{"number":3,"stage":"draft","percent":0,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":5}', '{"number":3,"stage":"percent","percent":12.5,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":6}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (5, 1700000000000, 'alice', 'first', 'override.put', 'user:u1 /orders', NULL, '{"dimension":"user","entity":"u1","resource":"/orders","terms":{"limit":50},"expiresAt":1800000000000}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (6, 1700000000000, 'alice', 'first', 'override.put', 'user:a\u0000b *', NULL, '{"dimension":"user","entity":"a\u0000b","resource":"*","terms":{"multiplier":2}}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (7, 1700000000000, 'alice', 'first', 'override.put', 'user:gone *', NULL, '{"dimension":"user","entity":"gone","resource":"*","terms":{"limit":"off"}}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (8, 1700000000000, 'alice', 'first', 'override.remove', 'user:gone *', '{"dimension":"user","entity":"gone","resource":"*","terms":{"limit":"off"}}', NULL);
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (9, 1700000000000, 'alice', 'first', 'member.put', 'tenant:t1', NULL, '{"dimension":"tenant","entity":"t1","tier":"premium"}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (10, 1700000000000, 'alice', 'first', 'incident.set', 'incident', '{"active":false}', '{"active":true}');
INSERT INTO audit (number, at, author, note, action, target, before, after) VALUES (11, 1700000000000, 'alice', 'first', 'api-key.create', 'slk_3DBmkKOLiL8D', NULL, '{"id":"slk_3DBmkKOLiL8D","name":"ci","role":"editor","createdAt":1700000000000}');
CREATE INDEX removals_by_position ON removals (position);
CREATE INDEX removals_by_time ON removals (removed_at);
CREATE INDEX versions_by_position ON versions (position);
CREATE UNIQUE INDEX versions_enforced ON versions (stage) WHERE stage = 'enforce';
CREATE UNIQUE INDEX versions_candidate ON versions ((CASE WHEN stage IN ('shadow', 'percent') THEN 1 END));
CREATE INDEX rules_by_resource ON rules (resource, version);
CREATE INDEX overrides_by_position ON overrides (position);
CREATE INDEX members_by_position ON members (position);
CREATE INDEX blocks_by_position ON blocks (position);
CREATE INDEX api_keys_by_position ON api_keys (position);
CREATE INDEX audit_by_author ON audit (author, number);
CREATE INDEX audit_by_action ON audit (action, number);
CREATE INDEX audit_by_time ON audit (at);
