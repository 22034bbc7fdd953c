--[[
Dead letters: a page of them, in the order they came. Changes nothing.
KEYS  1 record (string), 2 dead (sorted set: order of death -> place), 3 graves, 4 tasks (hashes)
ARGV  1 id of the store; 2 order after which; 3 how many at most; 4 bytes of a page, about
Result  nothing when the queue is gone; else whether there are more (1 byte), per dead letter: order (6), place (6), 1 if
        its task is still there (1), length (4) and letter
Atomic so that each page is one moment.
]]
local call, pack, read, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local record = call("GET", KEYS[1])
if not record or string.sub(record, 2, 9) ~= ARGV[1] then return false end

-- Whether the task of a dead letter is still there: one of its id that was made later is another.
local function isOwned(letter)
  if #letter < 39 or byte(letter) < 16 then return "\0" end
  local at = 26 + read(">I2", letter, 24) + 13
  local flags = byte(letter, at)
  if not flags or flags < 2 then return "\0" end
  at = flags == 3 and at + 8 + (byte(letter, at + 7) or 0) or at + 7
  local task = call("HGET", KEYS[4], sub(letter, at + 1, at + (byte(letter, at) or 0)))
  return task and sub(task, 8, 13) == sub(letter, 12, 17) and "\1" or "\0"
end

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
  pieces[#pieces + 1] = pack(">I6", tonumber(found[index + 1])) .. found[index] .. isOwned(letter) .. pack(">I4", #letter) .. letter
end
return table.concat(pieces)
