-- A store as version 1 wrote it. Never change this file: it stands for databases that exist.
PRAGMA application_id = 1097945972;
PRAGMA user_version = 1;
CREATE TABLE submission (  id TEXT PRIMARY KEY NOT NULL,  nonce TEXT NOT NULL UNIQUE,  publisher TEXT NOT NULL,  claimed INTEGER NOT NULL,  entered INTEGER NOT NULL,  namespace TEXT, name TEXT, version TEXT,  envelope TEXT) WITHOUT ROWID;
CREATE TABLE report (  submission TEXT PRIMARY KEY NOT NULL REFERENCES submission(id),  finished INTEGER NOT NULL,  package BLOB NOT NULL,  namespace TEXT, name TEXT, version TEXT,  verdict TEXT NOT NULL,  verdict_digest BLOB NOT NULL,  ledger_index INTEGER NOT NULL,  report TEXT NOT NULL);
CREATE INDEX report_package ON report(package, finished);
CREATE TABLE known (  id INTEGER PRIMARY KEY,  namespace TEXT NOT NULL,  name TEXT NOT NULL,  publisher TEXT NOT NULL,  confirmed INTEGER NOT NULL,  skeleton TEXT NOT NULL,  plain TEXT NOT NULL,  UNIQUE (namespace, name, publisher));
CREATE INDEX known_skeleton ON known(skeleton);
CREATE INDEX known_plain ON known(plain);
INSERT INTO submission VALUES ('5b2f00000000000000000000000000aa', 'aa00000000000000000000000000000001', 'acme', 1790000000, 1790000003, 'acme', 'log-reader', '1.0.0', '{"schema":"intake/v1"}');
INSERT INTO report VALUES ('5b2f00000000000000000000000000aa', 1790000004, x'00000000000000000000000000000000000000000000000000000000000000ee', 'acme', 'log-reader', '1.0.0', 'review', x'00000000000000000000000000000000000000000000000000000000000000dd', 7, '{"verdict":"review"}');
INSERT INTO known VALUES (1, 'acme', 'log-reader', 'acme', 1, 'log-reader', 'logreader');
INSERT INTO known VALUES (2, '', 'calendar_sync', 'otto', 0, 'calendar_sync', 'calendarsync');
