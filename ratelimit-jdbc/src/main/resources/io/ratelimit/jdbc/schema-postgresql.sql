-- Unlogged: after a crash of the server the table is empty, and all buckets are full. Without the word it is as safe as any
-- other, and slower. The free half of each page lets most updates write beside the old row, without the index.
CREATE UNLOGGED TABLE ratelimit_bucket (
    id bytea PRIMARY KEY,
    state bytea NOT NULL,
    expires timestamp NOT NULL
) WITH (fillfactor = 50);
