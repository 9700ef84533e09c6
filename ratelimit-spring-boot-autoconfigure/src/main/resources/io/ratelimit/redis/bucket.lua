--[[
Takes from token buckets, looks at them, or gives back.

What is kept. A bucket is what it is missing for being full, and the moment at which that was counted, in microseconds of
the server's clock. Time brings tokens, so what is missing shrinks by itself; a bucket that is missing nothing isn't kept.
Both numbers are whole. The unit, the tick, is chosen (in Java, once for each spec) so that a step of the clock is n ticks
and a token is d: counting rounds nothing. A spec is those numbers, "n/d/c/s", c being the capacity in tokens and s the
microseconds of a step: one, a thousand where no microsecond fits, or the period where tokens come back in batches. The
value is

    the moment, 8 bytes | missing, 8 bytes | n/d/c/s[ promised][ +until]

the first two as Lua has numbers, doubles, the highest byte first: to write digits and to read them again would cost as much
as all the rest. At 600/1m and a capacity of 800, n is 1, d is 100000, and 1795000000000000, 250000, "1/100000/800/1" is a
bucket that is two and a half tokens short, and full again a quarter of a second after that moment.

Taking adds the price of the tokens to what is missing, if the sum is not more than a full bucket holds. A call that may
wait takes ahead: then the sum may be more by what comes back within its wait. What is beyond full is the bucket's debt,
and the wait. While there is a debt nobody else takes at once, so the first to come is the first served.

Giving back takes the price away again, but undercuts no promise: those who took ahead later count on these tokens being
gone. Only what nobody behind stands on comes back. After that the debt no longer shows how far the last promise reaches,
so its ticks are kept as the fourth part of the value, and shrink with time like what is missing.

When a value was written under another spec, that counts until the last who was promised a moment is served, or until now;
the tokens that are there then are kept, cut to the new capacity. Where somebody waits, the moment is kept as a promise,
with a minus before it: until then nothing comes back, since places in the line tell nothing any more. A change is written
even where the call is denied, so that from now on time counts by the new spec. And until the bucket would have been full
under the old one, the value is kept, in whole seconds and with a plus before them, even if nothing is missing: a key that is
not there is a full bucket under any spec, and where nodes differ, as while a new version is rolled out, the quick one of two
specs would have the slow one's bucket forgotten.

A value that is none of these is somebody else's, and an error: it is neither counted with nor written over.

Numbers. Lua has only doubles, which are exact for whole numbers up to 2^53, about 9.007e15. What is kept is at most MOST.
A product that could be more is only compared with less, or bounded by it: rounding keeps the order. The quotient of two
such numbers, rounded down or up, is exact too. tostring keeps 14 digits, hence the formats.

Time. The clock is the server's, read once; tests pass their own. If it steps back, a bucket's time stands still until the
moment that was counted. Where that is more than a minute and a step ahead, the clock had run ahead and was set right: then the
moment is taken to be the first to come that is at the same place within a step. So what is missing stays missing, no batch
comes twice, and time counts again. That is written even where the call is denied, or it would begin anew with each.

All is computed before the first write, so an error leaves nothing half done, and a denial takes nothing and mostly writes
nothing.

KEYS     the buckets; one may be named twice
ARGV     for each bucket numbers as in a value, and the spec behind them
           to take or look: n, s, the ticks of a full bucket, the price, the microseconds that the call may wait
           to give back: the tokens, and, if noted, when they were due: the step, modulo the third (else 0), and the ticks
         then take (that goes without saying), look (says what take would, and writes nothing) or give
         then, in tests only, the time
Returns, to take or look, for each bucket the time and what it is missing then, as in a value; if it hasn't the tokens,
what it is missing without them and one more, negative. What may follow says nothing.
]]

local MOST = 8e15
local SLACK = 1000
local AHEAD = 60 * 1000000

local pack, unpack = struct.pack, struct.unpack
local operation, now = ARGV[#KEYS + 1] or 'take', ARGV[#KEYS + 2]
if now then
    now = tonumber(now)
    SLACK = 600000 -- The time of tests may stand still while the server's goes on.
else
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
end

-- What is asked most, without the tables and functions that the rest needs: to take at once from a bucket that is under the
-- spec already. It is the same arithmetic as below, and more than twice as fast. Returns what is written, and for how long;
-- where the tokens are short, what is replied alone; and nothing where it takes more to tell. All it needs is passed to it:
-- what a function finds around it costs Lua more.
local function take_at_once(key, wanted, now, slack)
    local pack, unpack = struct.pack, struct.unpack
    local n, s, full, price, wait = unpack('>ddddd', wanted)
    local spec = string.sub(wanted, 41)
    local value = redis.call('GET', key)
    local at, missing = now, 0
    if value and string.sub(value, 17) == spec then
        at, missing = unpack('>dd', value)
    elseif value then
        return
    end
    if wait > 0 or not (at >= 0 and at <= now and missing >= 0 and missing <= 8e15) then
        return
    end
    missing = missing - (math.floor(now / s) - math.floor(at / s)) * n
    if missing < 0 then
        missing = 0
    end
    local after = missing + price
    if after > full then
        return pack('>dd', now, -missing - 1)
    end
    local micros = math.ceil(after / n) * s - now % s
    return pack('>dd', now, after) .. spec, math.ceil(micros / 1000) + slack
end

if operation == 'take' and #KEYS == 1 then
    local value, millis = take_at_once(KEYS[1], ARGV[1], now, SLACK)
    if millis then
        redis.call('SET', KEYS[1], value, 'PX', millis)
    end
    if value then
        return value
    end
elseif operation == 'take' then
    local replies, millis, all = {}, {}, true
    for i = 1, #KEYS do
        replies[i], millis[i] = take_at_once(KEYS[i], ARGV[i], now, SLACK)
        for j = 1, i - 1 do
            if KEYS[j] == KEYS[i] then
                replies[i] = nil
            end
        end
        if not replies[i] then
            replies = nil
            break
        end
        all = all and millis[i]
    end
    if replies then
        for i = 1, all and #KEYS or 0 do
            redis.call('SET', KEYS[i], replies[i], 'PX', millis[i])
        end
        return replies
    end
end

local function numbers(spec)
    local n, d, c, s = string.match(spec, '^(%d+)/(%d+)/(%d+)/(%d+)$')
    return tonumber(n), tonumber(d), tonumber(c), tonumber(s)
end

-- Brings a bucket to the present.
local function pass(bucket)
    local at, s = bucket.at, bucket.s
    if now > at then
        local steps = s == 1 and now - at or math.floor(now / s) - math.floor(at / s)
        bucket.missing = math.max(bucket.missing - steps * bucket.n, 0)
        if bucket.promised > 0 then
            bucket.promised = math.max(bucket.promised - steps * bucket.n, 0)
            bucket.moved = bucket.moved and bucket.promised > 0
        end
        bucket.at = now
    end
    if bucket.kept_until * 1000000 <= now then
        bucket.kept_until = 0
    end
end

-- How far the last promise reaches, in ticks.
local function last_promise(bucket)
    return math.max(bucket.missing - bucket.full, bucket.promised)
end

-- When so much won't be missing any more.
local function full_at(bucket, missing)
    return bucket.at + math.ceil(missing / bucket.n) * bucket.s - bucket.at % bucket.s
end

-- Puts a bucket under another spec.
local function convert(bucket, spec)
    local _, old_d = numbers(bucket.spec)
    local n, d, c, s = numbers(spec)
    local full, kept = c * d, 0
    local promised = last_promise(bucket)
    local longest = math.max(bucket.missing, promised)
    if longest > 0 then
        bucket.kept_until = math.max(bucket.kept_until, math.ceil(math.min(full_at(bucket, longest), MOST) / 1000000))
    end
    local served, steps = bucket.at, 0
    if promised > 0 then
        steps = math.ceil(promised / bucket.n)
        served = bucket.at + steps * bucket.s - bucket.at % bucket.s
    end
    local have = bucket.full - math.max(bucket.missing - steps * bucket.n, 0)
    local tokens = math.floor(have / old_d)
    if tokens < c then
        local rest = have - tokens * old_d
        local part = math.floor(rest * d / old_d)
        if rest * d > MOST then
            part = math.max(math.floor(rest / old_d * d) - 1, 0)
        end
        kept = full - (tokens * d + part)
    end
    local first = math.floor(bucket.at / s)
    bucket.missing = math.min(kept + (math.floor(served / s) - first) * n, MOST)
    bucket.promised = promised > 0 and math.min((math.ceil(served / s) - first) * n, MOST) or 0
    bucket.moved = promised > 0
    bucket.spec, bucket.n, bucket.s, bucket.full = spec, n, s, full
end

local NO_BUCKET = 'BADVALUE what a key of ratelimit holds is no bucket'

-- Whether it is a number that a value may have.
local function counts(number, least)
    return number >= least and number <= MOST
end

-- The bucket of a key, as it is now under the spec it was written under.
local function read(key, spec, n, s, full)
    local value = redis.call('GET', key)
    if not value then
        return {missing = 0, promised = 0, kept_until = 0, at = now, spec = spec, n = n, s = s, full = full}
    end
    local written, promised, kept_until = string.match(value, '^(%d+/%d+/%d+/%d+) ?(%-?%d*) ?%+?(%d*)$', 17)
    if not written then
        error(NO_BUCKET)
    end
    local at, missing = unpack('>dd', value)
    promised, kept_until = tonumber(promised) or 0, tonumber(kept_until) or 0
    if written ~= spec then
        local d, c
        n, d, c, s = numbers(written)
        full = c * d
        if not (counts(n, 1) and counts(d, 1) and counts(c, 1) and counts(s, 1) and counts(full, 1)) then
            error(NO_BUCKET)
        end
    end
    if not (counts(at, 0) and counts(missing, 0) and counts(math.abs(promised), 0) and counts(kept_until * 1000000, 0)) then
        error(NO_BUCKET)
    end
    local ran_ahead = at - now > AHEAD + s
    if ran_ahead then
        at = now + 1 + (at - now - 1) % s
    end
    local bucket = {missing = missing, promised = math.abs(promised), moved = promised < 0, kept_until = kept_until,
        ran_ahead = ran_ahead, at = at, spec = written, n = n, s = s, full = full}
    pass(bucket)
    return bucket
end

local function write(key, bucket)
    local longest = math.max(bucket.missing, bucket.promised)
    if longest == 0 and bucket.kept_until == 0 then
        redis.call('DEL', key)
        return
    end
    local value = pack('>dd', bucket.at, bucket.missing) .. bucket.spec
    if bucket.moved then
        value = value .. string.format(' -%.0f', bucket.promised)
    elseif bucket.promised > 0 and bucket.promised > bucket.missing - bucket.full then
        value = value .. string.format(' %.0f', bucket.promised)
    end
    local last = longest > 0 and full_at(bucket, longest) or bucket.at
    if bucket.kept_until > 0 then
        value = value .. string.format(' +%.0f', bucket.kept_until)
        last = math.max(last, bucket.kept_until * 1000000)
    end
    local micros = math.min(last - now, MOST)
    redis.call('SET', key, value, 'PX', math.ceil(micros / 1000) + SLACK)
end

local buckets = {}
local changed = {}

if operation == 'give' then
    for i = #KEYS, 1, -1 do -- where a bucket was taken from twice, the second take stands behind the first
        local key, spec = KEYS[i], string.sub(ARGV[i], 33)
        local tokens, step, modulus, rest = unpack('>dddd', ARGV[i])
        local n, d, c, s = numbers(spec)
        local bucket = buckets[key] or read(key, spec, n, s, c * d)
        buckets[key] = bucket
        if bucket.missing > 0 then
            local _, own_d, own_c = numbers(bucket.spec)
            local price = math.min(tokens, own_c) * own_d
            local promised = last_promise(bucket)
            local after = 0
            if promised > 0 then
                after = price
                if modulus > 0 and bucket.spec == spec and not bucket.moved then
                    local half = math.floor(modulus / 2)
                    local steps = (step - math.floor(bucket.at / s) + half) % modulus - half
                    local behind = promised - (steps * n + rest)
                    after = behind < 0 and price or behind
                end
            end
            if after < price then
                bucket.missing = math.max(bucket.missing - price + after, 0)
                bucket.promised = after > 0 and promised or bucket.promised
                changed[key] = bucket
            end
        end
    end
    for key, bucket in pairs(changed) do
        write(key, bucket)
    end
    return
end

local reply = {}
local all = true
for i, key in ipairs(KEYS) do
    local n, s, full, price, wait = unpack('>ddddd', ARGV[i])
    local spec = string.sub(ARGV[i], 41)
    local seen = buckets[key]
    local bucket = seen or read(key, spec, n, s, full)
    buckets[key] = bucket
    if bucket.spec ~= spec then
        convert(bucket, spec)
        bucket.anyway = not seen and bucket.missing
    elseif bucket.ran_ahead and not seen then
        bucket.anyway = bucket.missing
    end
    local limit = full
    if wait > 0 then
        limit = math.min(full + math.floor((wait + bucket.at % s) / s) * n, MOST)
    end
    local missing = bucket.missing
    if missing + price <= limit then
        bucket.missing = missing + price
        reply[i] = pack('>dd', now, missing + price)
    else
        all = false
        reply[i] = pack('>dd', now, -missing - 1)
    end
end
if operation == 'take' then
    for key, bucket in pairs(buckets) do
        if all then
            write(key, bucket)
        elseif bucket.anyway then
            bucket.missing = bucket.anyway
            write(key, bucket)
        end
    end
end
return reply
