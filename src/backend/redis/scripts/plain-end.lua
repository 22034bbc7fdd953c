--[[
Plain: the last part, as `finish` in frame.lua. Follows one of the plain scripts, which has set `answer`, and `kept` where a repeat gets less, or
`whole` where that is more than the answer of one operation.
]]
kept = kept or answer
call("HSET", KEYS[1], sub(header, 1, 1), sub(header, 2, 7) .. (whole or pack(">I4", #kept) .. kept))
if not last or byte(header, 18) % 2 == 1 then call("PEXPIRE", KEYS[1], (read(">I4", header, 14))) end
redis.pcall("PUBLISH", ARGV[3], sub(record, 94))
return answer
