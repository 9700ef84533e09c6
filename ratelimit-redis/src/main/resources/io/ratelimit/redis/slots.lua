--[[
Sets the register of one process for the calls in flight of a key.

The value of a key is a text with a register for each process: "process number slots usable deadline;". The deadline is in
microseconds of the server's clock. How many slots a process may use, and why their sum never exceeds the limit, is described at
io.ratelimit.remote.inflight.RegisterStore.

KEYS     the key
ARGV     the process, as hexadecimal digits; the number of its claim; the calls that run there; the slots that it wants; the limit;
         the time to live in milliseconds; then, in tests only, the time in microseconds
Returns the usable slots of the process, or -1 if a later claim was there before; and the slots of all others.
]]

local number, have, want, limit, millis = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local now, slack = tonumber(ARGV[7]), 600000 -- the time of a test may stand still while the server's clock runs
if not now then
    local time = redis.call('TIME')
    now, slack = time[1] * 1000000.0 + time[2], 1000
end

local registers, others, before = {}, 0, 0
for process, claim, slots, usable, deadline in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%x+) (%d+) (%d+) (%d+) (%d+);') do
    if tonumber(deadline) > now then
        if process ~= ARGV[1] then
            others = others + tonumber(slots)
            registers[#registers + 1] = process .. ' ' .. claim .. ' ' .. slots .. ' ' .. usable .. ' ' .. deadline .. ';'
        elseif number <= tonumber(claim) then
            return {-1, 0}
        else
            before = tonumber(usable)
        end
    end
end
local usable = math.max(0, math.min(want, math.max(limit - others, before)))
registers[#registers + 1] = string.format(
    '%s %.0f %.0f %.0f %.0f;', ARGV[1], number, math.max(have, usable), usable, now + millis * 1000)
redis.call('SET', KEYS[1], table.concat(registers), 'PX', millis + slack)
return {usable, others}
