-- As gcra.lua, for several keys.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local replies = {}
for i = 1, #KEYS do
    local before = tonumber(redis.call('GET', KEYS[i]) or now)
    local after = math.max(before, now) + ARGV[1]
    if after - now > ARGV[2] + 0 then
        replies[i] = -1
    else
        redis.call('SET', KEYS[i], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
        replies[i] = after - now
    end
end
return replies
