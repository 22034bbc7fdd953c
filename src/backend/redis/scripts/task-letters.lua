--[[
Task letters: dead letters that task-failures.lua told of. Changes nothing.
KEYS  per queue: record (string), graves (hash)
ARGV  1 id of the store; 2 bytes of a page, about; 3 per dead letter: number of its queue among those of KEYS (2 bytes), entry of failures (24)
Result  per dead letter: name of its queue and letter, empty where it is gone; fewer than asked when they are large
Atomic because each letter must be whole.
]]
local call, read, sub = redis.call, struct.unpack, string.sub
local wanted, pageBytes, result, bytes, names = ARGV[3], tonumber(ARGV[2]), {}, 0, {}
for at = 1, #wanted, 26 do
  if bytes >= pageBytes then break end
  local queue, entry = read(">I2c24", wanted, at)
  if names[queue] == nil then
    local record = call("GET", KEYS[queue * 2 - 1])
    names[queue] = record and sub(record, 2, 9) == ARGV[1] and sub(record, 94) or ""
  end
  local letter = names[queue] ~= "" and call("HGET", KEYS[queue * 2], sub(entry, 19, 24)) or ""
  -- One that was redriven since may have died anew.
  if sub(letter, 12, 23) ~= sub(entry, 1, 12) then letter = "" end
  bytes = bytes + #letter
  result[#result + 1], result[#result + 2] = names[queue], letter
end
return result
