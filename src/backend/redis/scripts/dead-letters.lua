--[[
Dead letters: a page of them, in the order they came. Changes nothing.
KEYS  1 record (string), 2 dead (sorted set: order of death -> place), 3 graves (hash)
ARGV  1 id of the store; 2 order after which; 3 how many at most; 4 bytes of a page, about
Result  nothing when the queue is gone; else whether there are more (1 byte), per dead letter: order (6), place (6), length (4) and letter
Atomic so that each page is one moment.
]]
local call, pack = redis.call, struct.pack
local record = call("GET", KEYS[1])
if not record or string.sub(record, 2, 9) ~= ARGV[1] then return false end
local limit, pageBytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local found = call("ZRANGEBYSCORE", KEYS[2], "(" .. ARGV[2], "+inf", "WITHSCORES", "LIMIT", 0, limit + 1)
local pieces, count, bytes = { "\0" }, 0, 0
for index = 1, #found, 2 do
  if count == limit or bytes >= pageBytes then
    pieces[1] = "\1"
    break
  end
  local letter = call("HGET", KEYS[3], found[index]) or ""
  count, bytes = count + 1, bytes + #letter
  pieces[#pieces + 1] = pack(">I6", tonumber(found[index + 1])) .. found[index] .. pack(">I4", #letter) .. letter
end
return table.concat(pieces)
