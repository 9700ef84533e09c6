-- The least that a limiter can do in Redis: one moment a key, no conversion, no waiting, no giving back, one key.
-- ARGV: the microseconds of a token, and those of a full bucket.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local before = tonumber(redis.call('GET', KEYS[1]) or now)
local after = math.max(before, now) + ARGV[1]
if after - now > ARGV[2] + 0 then
    return -1
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return after - now
