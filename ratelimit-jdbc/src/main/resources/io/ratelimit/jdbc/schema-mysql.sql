CREATE TABLE ratelimit_bucket (
    id binary(16) PRIMARY KEY,
    state varbinary(1000) NOT NULL,
    expires datetime(3) NOT NULL
);
