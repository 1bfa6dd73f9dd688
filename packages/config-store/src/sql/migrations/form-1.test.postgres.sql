-- A PostgreSQL database of form 1 with rows in it, as it was written then (pg_dump --column-inserts).
CREATE TABLE api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    secret_hash text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    "position" bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE audit (
    number bigint NOT NULL,
    at bigint NOT NULL,
    author text NOT NULL COLLATE pg_catalog."C",
    note text,
    action text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL,
    before text,
    after text
);
ALTER TABLE audit ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE blocks (
    dimension text NOT NULL COLLATE pg_catalog."C",
    entity text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    "position" bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE deny_entries (
    version bigint NOT NULL,
    place bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    resource text COLLATE pg_catalog."C",
    dimension text COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE domains (
    version bigint NOT NULL,
    place bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE exemptions (
    version bigint NOT NULL,
    place bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    resource text COLLATE pg_catalog."C",
    dimension text COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE feed_head (
    id bigint NOT NULL,
    "position" bigint NOT NULL,
    floor bigint NOT NULL,
    CONSTRAINT feed_head_id_check CHECK ((id = 1))
);
CREATE TABLE incident (
    id bigint NOT NULL,
    body text NOT NULL,
    "position" bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT incident_id_check CHECK ((id = 1))
);
CREATE TABLE members (
    dimension text NOT NULL COLLATE pg_catalog."C",
    entity text NOT NULL COLLATE pg_catalog."C",
    tier text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    "position" bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE overrides (
    dimension text NOT NULL COLLATE pg_catalog."C",
    entity text NOT NULL COLLATE pg_catalog."C",
    resource text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    "position" bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE removals (
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    "position" bigint NOT NULL,
    removed_at bigint NOT NULL
);
CREATE TABLE rules (
    version bigint NOT NULL,
    place bigint NOT NULL,
    name text COLLATE pg_catalog."C",
    resource text NOT NULL COLLATE pg_catalog."C",
    dimension text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE schema_migrations (
    number bigint NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE tiers (
    version bigint NOT NULL,
    place bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);
CREATE TABLE versions (
    number bigint NOT NULL,
    stage text NOT NULL COLLATE pg_catalog."C",
    percent double precision NOT NULL,
    based_on bigint,
    replaced bigint,
    enforced_at bigint,
    created_at bigint NOT NULL,
    created_by text NOT NULL COLLATE pg_catalog."C",
    note text,
    settings text NOT NULL,
    "position" bigint NOT NULL,
    CONSTRAINT versions_stage_check CHECK ((stage = ANY (ARRAY['draft'::text, 'shadow'::text, 'percent'::text, 'enforce'::text, 'retired'::text])))
);
INSERT INTO api_keys (id, name, secret_hash, body, "position", changed_at, changed_by) VALUES ('slk_3DBmkKOLiL8D', 'ci', '24019a6ecc936769c50ab7ac42108d12f0587843fd4b54387af345d4e57dc3c3', '{"id":"slk_3DBmkKOLiL8D","name":"ci","role":"editor","createdAt":1700000000000}', 13, 1700000000000, 'alice');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (1, 1700000000000, 'alice', 'first', 'version.edit', 'version 1', NULL, '{"number":1,"stage":"enforce","percent":0,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":2}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (2, 1700000000000, 'alice', 'first', 'version.edit', 'version 2', '{"number":1,"stage":"enforce","percent":0,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":2}', '{"number":2,"stage":"enforce","percent":0,"basedOn":1,"createdAt":1700000000000,"createdBy":"alice","note":"first","revision":3}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (3, 1700000000000, 'bob', NULL, 'version.create', 'version 3', NULL, '{"number":3,"stage":"draft","percent":0,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":5}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (4, 1700000000000, 'bob', NULL, 'version.stage', 'version 3', '{"number":3,"stage":"draft","percent":0,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":5}', '{"number":3,"stage":"percent","percent":12.5,"basedOn":2,"createdAt":1700000000000,"createdBy":"bob","revision":6}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (5, 1700000000000, 'alice', 'first', 'override.put', 'user:u1 /orders', NULL, '{"dimension":"user","entity":"u1","resource":"/orders","terms":{"limit":50},"expiresAt":1800000000000}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (6, 1700000000000, 'alice', 'first', 'override.put', 'user:a\u0000b *', NULL, '{"dimension":"user","entity":"a\u0000b","resource":"*","terms":{"multiplier":2}}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (7, 1700000000000, 'alice', 'first', 'override.put', 'user:gone *', NULL, '{"dimension":"user","entity":"gone","resource":"*","terms":{"limit":"off"}}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (8, 1700000000000, 'alice', 'first', 'override.remove', 'user:gone *', '{"dimension":"user","entity":"gone","resource":"*","terms":{"limit":"off"}}', NULL);
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (9, 1700000000000, 'alice', 'first', 'member.put', 'tenant:t1', NULL, '{"dimension":"tenant","entity":"t1","tier":"premium"}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (10, 1700000000000, 'alice', 'first', 'incident.set', 'incident', '{"active":false}', '{"active":true}');
INSERT INTO audit (number, at, author, note, action, target, before, after) OVERRIDING SYSTEM VALUE VALUES (11, 1700000000000, 'alice', 'first', 'api-key.create', 'slk_3DBmkKOLiL8D', NULL, '{"id":"slk_3DBmkKOLiL8D","name":"ci","role":"editor","createdAt":1700000000000}');
INSERT INTO blocks (dimension, entity, body, "position", changed_at, changed_by) VALUES ('ip', '10.0.0.1', '{"dimension":"ip","entity":"10.0.0.1","until":1700000060000,"strikes":1,"forgottenAt":1700086400000.5}', 14, 1700000000000, 'alice');
INSERT INTO exemptions (version, place, name, resource, dimension, body) VALUES (2, 0, 'health', '/health', NULL, '{"name":"health","match":{"resource":"/health"}}');
INSERT INTO feed_head (id, "position", floor) VALUES (1, 14, 0);
INSERT INTO incident (id, body, "position", changed_at, changed_by) VALUES (1, '{"active":true}', 12, 1700000000000, 'alice');
INSERT INTO members (dimension, entity, tier, body, "position", changed_at, changed_by) VALUES ('tenant', 't1', 'premium', '{"dimension":"tenant","entity":"t1","tier":"premium"}', 11, 1700000000000, 'alice');
INSERT INTO overrides (dimension, entity, resource, body, "position", changed_at, changed_by) VALUES ('user', 'u1', '/orders', '{"dimension":"user","entity":"u1","resource":"/orders","terms":{"limit":50},"expiresAt":1800000000000}', 7, 1700000000000, 'alice');
INSERT INTO overrides (dimension, entity, resource, body, "position", changed_at, changed_by) VALUES ('user', 'a\u0000b', '*', '{"dimension":"user","entity":"a\u0000b","resource":"*","terms":{"multiplier":2}}', 8, 1700000000000, 'alice');
INSERT INTO removals (kind, key, body, "position", removed_at) VALUES ('override', '{"dimension":"user","entity":"gone","resource":"*"}', '{"dimension":"user","entity":"gone","resource":"*"}', 10, 1700000000000);
INSERT INTO rules (version, place, name, resource, dimension, body) VALUES (1, 0, NULL, '/orders', 'user', '{"resource":"/orders","dimension":"user","limit":10,"window":"1m"}');
INSERT INTO rules (version, place, name, resource, dimension, body) VALUES (2, 0, NULL, '/orders', 'user', '{"resource":"/orders","dimension":"user","limit":10,"window":"1m"}');
INSERT INTO schema_migrations (number, applied_at) VALUES (1, 1700000000000);
INSERT INTO tiers (version, place, name, body) VALUES (1, 0, 'premium', '{"name":"premium","multiplier":10}');
INSERT INTO tiers (version, place, name, body) VALUES (2, 0, 'premium', '{"name":"premium","multiplier":10}');
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, "position") VALUES (1, 'retired', 0, NULL, NULL, 1700000000000, 1700000000000, 'alice', 'first', '{"rules":[],"tiers":[],"regions":{"US":2}}', 4);
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, "position") VALUES (2, 'enforce', 0, 1, 1, 1700000000000, 1700000000000, 'alice', 'first', '{"rules":[],"tiers":[],"regions":{"US":2},"exemptions":[]}', 3);
INSERT INTO versions (number, stage, percent, based_on, replaced, enforced_at, created_at, created_by, note, settings, "position") VALUES (3, 'percent', 12.5, 2, NULL, NULL, 1700000000000, 'bob', NULL, '{"rules":[]}', 6);
SELECT pg_catalog.setval('audit_number_seq', 11, true);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (number);
ALTER TABLE ONLY blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (dimension, entity);
ALTER TABLE ONLY deny_entries
    ADD CONSTRAINT deny_entries_pkey PRIMARY KEY (version, place);
ALTER TABLE ONLY domains
    ADD CONSTRAINT domains_pkey PRIMARY KEY (version, place);
ALTER TABLE ONLY exemptions
    ADD CONSTRAINT exemptions_pkey PRIMARY KEY (version, place);
ALTER TABLE ONLY feed_head
    ADD CONSTRAINT feed_head_pkey PRIMARY KEY (id);
ALTER TABLE ONLY incident
    ADD CONSTRAINT incident_pkey PRIMARY KEY (id);
ALTER TABLE ONLY members
    ADD CONSTRAINT members_pkey PRIMARY KEY (dimension, entity);
ALTER TABLE ONLY overrides
    ADD CONSTRAINT overrides_pkey PRIMARY KEY (dimension, entity, resource);
ALTER TABLE ONLY removals
    ADD CONSTRAINT removals_pkey PRIMARY KEY (kind, key);
ALTER TABLE ONLY rules
    ADD CONSTRAINT rules_pkey PRIMARY KEY (version, place);
ALTER TABLE ONLY schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY tiers
    ADD CONSTRAINT tiers_pkey PRIMARY KEY (version, place);
ALTER TABLE ONLY versions
    ADD CONSTRAINT versions_pkey PRIMARY KEY (number);
CREATE INDEX api_keys_by_position ON api_keys USING btree ("position");
CREATE INDEX audit_by_action ON audit USING btree (action, number);
CREATE INDEX audit_by_author ON audit USING btree (author, number);
CREATE INDEX audit_by_time ON audit USING btree (at);
CREATE INDEX blocks_by_position ON blocks USING btree ("position");
CREATE INDEX members_by_position ON members USING btree ("position");
CREATE INDEX overrides_by_position ON overrides USING btree ("position");
CREATE INDEX removals_by_position ON removals USING btree ("position");
CREATE INDEX removals_by_time ON removals USING btree (removed_at);
CREATE INDEX rules_by_resource ON rules USING btree (resource, version);
CREATE INDEX versions_by_position ON versions USING btree ("position");
CREATE UNIQUE INDEX versions_candidate ON versions USING btree ((
CASE
    WHEN (stage = ANY (ARRAY['shadow'::text, 'percent'::text])) THEN 1
    ELSE NULL::integer
END));
CREATE UNIQUE INDEX versions_enforced ON versions USING btree (stage) WHERE (stage = 'enforce'::text);
ALTER TABLE ONLY deny_entries
    ADD CONSTRAINT deny_entries_version_fkey FOREIGN KEY (version) REFERENCES versions(number);
ALTER TABLE ONLY domains
    ADD CONSTRAINT domains_version_fkey FOREIGN KEY (version) REFERENCES versions(number);
ALTER TABLE ONLY exemptions
    ADD CONSTRAINT exemptions_version_fkey FOREIGN KEY (version) REFERENCES versions(number);
ALTER TABLE ONLY rules
    ADD CONSTRAINT rules_version_fkey FOREIGN KEY (version) REFERENCES versions(number);
ALTER TABLE ONLY tiers
    ADD CONSTRAINT tiers_version_fkey FOREIGN KEY (version) REFERENCES versions(number);
ALTER TABLE ONLY versions
    ADD CONSTRAINT versions_based_on_fkey FOREIGN KEY (based_on) REFERENCES versions(number);
ALTER TABLE ONLY versions
    ADD CONSTRAINT versions_replaced_fkey FOREIGN KEY (replaced) REFERENCES versions(number);
