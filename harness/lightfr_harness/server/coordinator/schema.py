"""The tables of a coordinator, in the words of SQLite; PostgreSQL has the same with other names of types."""

from __future__ import annotations

SCHEMA_VERSION = 8

SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS versions (model_version INTEGER PRIMARY KEY, manifest BLOB NOT NULL);
-- One row for each cohort; those with the same number are one round.
CREATE TABLE IF NOT EXISTS rounds (
  round_id BLOB PRIMARY KEY, number INTEGER NOT NULL, cohort INTEGER NOT NULL, cohorts INTEGER NOT NULL,
  model_version INTEGER NOT NULL, manifest_sha256 BLOB NOT NULL, goal INTEGER NOT NULL, places INTEGER NOT NULL,
  deadline_seconds REAL NOT NULL, opened_at REAL NOT NULL, state INTEGER NOT NULL, kind INTEGER NOT NULL,
  phase INTEGER NOT NULL, places_taken INTEGER NOT NULL DEFAULT 0, first_place_at REAL, deadline REAL, ended_at REAL,
  upload_bytes INTEGER NOT NULL DEFAULT 0, next_model_version INTEGER NOT NULL DEFAULT 0,
  upload_count INTEGER NOT NULL DEFAULT 0, UNIQUE (number, cohort));
CREATE INDEX IF NOT EXISTS open_rounds ON rounds (number) WHERE ended_at IS NULL;
CREATE TABLE IF NOT EXISTS places (
  round_id BLOB NOT NULL, device TEXT NOT NULL, peer_id BLOB NOT NULL, PRIMARY KEY (round_id, device)) WITHOUT ROWID;
-- What devices sent in a phase; uploads with their ids.
CREATE TABLE IF NOT EXISTS deliveries (
  round_id BLOB NOT NULL, phase INTEGER NOT NULL, device TEXT NOT NULL, request_sha256 BLOB NOT NULL, body BLOB,
  upload_id BLOB NOT NULL, size_bytes INTEGER NOT NULL, UNIQUE (round_id, phase, device));
-- The public keys that devices of a cohort advertised, while it lasts: each is of one device.
CREATE TABLE IF NOT EXISTS advertised (
  round_id BLOB NOT NULL, key BLOB NOT NULL, device TEXT NOT NULL, PRIMARY KEY (round_id, key)) WITHOUT ROWID;
-- What the bodies of a cohort, in deliveries and sums, are encrypted with while it lasts.
CREATE TABLE IF NOT EXISTS body_keys (round_id BLOB PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS accuracy (
  model_version INTEGER PRIMARY KEY, users INTEGER NOT NULL, hit_rate REAL NOT NULL, ndcg REAL NOT NULL);
-- What the phases of secure aggregation fixed, while it lasts.
CREATE TABLE IF NOT EXISTS settled (
  round_id BLOB PRIMARY KEY, phase INTEGER NOT NULL, entries BLOB NOT NULL, vouchers BLOB NOT NULL,
  degree INTEGER NOT NULL, holders INTEGER NOT NULL, threshold INTEGER NOT NULL, roster_signature BLOB NOT NULL,
  included BLOB NOT NULL, included_signature BLOB NOT NULL, included_signers BLOB NOT NULL,
  survivors BLOB NOT NULL, survivors_signature BLOB NOT NULL, survivors_signers BLOB NOT NULL);
-- What a cohort added up, until its round is combined.
CREATE TABLE IF NOT EXISTS sums (round_id BLOB PRIMARY KEY, body BLOB NOT NULL);
-- Devices whose deliveries did not fit together: how often, how at last, and when.
CREATE TABLE IF NOT EXISTS faults (
  device TEXT PRIMARY KEY, count INTEGER NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
-- What cohorts added up in evaluation rounds, and what it is about.
CREATE TABLE IF NOT EXISTS evaluations (
  number INTEGER PRIMARY KEY, model_version INTEGER NOT NULL, candidates TEXT NOT NULL, sums BLOB NOT NULL,
  noise_variance REAL NOT NULL);
-- The lists of items that were taken up, by the version that each made.
CREATE TABLE IF NOT EXISTS catalogues (
  model_version INTEGER PRIMARY KEY, sha256 TEXT NOT NULL, has_counts INTEGER NOT NULL, joined INTEGER NOT NULL,
  "left" INTEGER NOT NULL, returned INTEGER NOT NULL, is_renumbered INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS counted (device TEXT PRIMARY KEY) WITHOUT ROWID;
-- Devices that are suspected of having spoilt a sum, as standing.py has them.
CREATE TABLE IF NOT EXISTS suspects (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
-- Where replicas share no folder: files named artifacts/<sha256> and states/<sha256>, and which state a version has.
CREATE TABLE IF NOT EXISTS pieces (
  name TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (name, number));
CREATE TABLE IF NOT EXISTS states (model_version INTEGER PRIMARY KEY, name TEXT NOT NULL);
-- The list of items that replicas take up next.
CREATE TABLE IF NOT EXISTS next_catalogue (
  id INTEGER PRIMARY KEY CHECK (id = 1), sha256 TEXT NOT NULL, content BLOB NOT NULL);
"""
