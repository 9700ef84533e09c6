CREATE TABLE ratelimit_bucket (
    id raw(16) PRIMARY KEY,
    state raw(1000) NOT NULL,
    expires timestamp NOT NULL
);
