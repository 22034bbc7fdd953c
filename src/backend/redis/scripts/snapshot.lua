--[[
Snapshot: pending and processing of queues, all at one moment; the marks of that moment; or whether earlier marks are reached.
KEYS  1 meta (hash); then seven per queue: record (string), pending (list), returned, delayed, leases, later, held (sorted sets)
ARGV  1 id of the store; 2 change number of the registry that the list of queues is founded on, or empty
      3 `status`, `mark`, or per queue clears (6 bytes) and sequence (6) of a mark
Result  0, then per queue pending (6 bytes), processing (6); for `mark` also clears (6) and sequence (6); for marks also 1 if reached
        1: the registry has changed. 2 and index (4): this queue is missing.
Atomic because only then no message can be missed on its way from one collection or queue to another.
]]
local call, pack, read, sub = redis.call, struct.pack, struct.unpack, string.sub
if ARGV[2] ~= "" then
  local meta = call("HMGET", KEYS[1], "store", "change")
  if meta[1] ~= ARGV[1] or meta[2] ~= ARGV[2] then return "\1" end
end
local want, result = ARGV[3], { "\0" }

-- Whether anything up to `sequence` is unacked. Records of the list that are none of ours are passed over.
local function remains(base, sequence)
  for key = 3, 7 do
    if key == 3 or key > 5 then
      local first = call("ZRANGE", KEYS[base + key], 0, 0)[1]
      if first and read(">I6", first) <= sequence then return true end
    end
  end
  for index = 0, 1000 do
    local entry = call("LINDEX", KEYS[base + 2], index)
    if not entry then return false end
    if #entry >= 14 and string.byte(entry) == 1 then return read(">I6", entry, 2) <= sequence end
  end
  return true
end

for index = 0, (#KEYS - 1) / 7 - 1 do
  local base = 1 + index * 7
  local record = call("GET", KEYS[base + 1])
  if not record or sub(record, 2, 9) ~= ARGV[1] then return "\2" .. pack(">I4", index) end
  local pending = call("LLEN", KEYS[base + 2]) + call("ZCARD", KEYS[base + 3]) + call("ZCARD", KEYS[base + 4])
  local answer = pack(">I6I6", pending, call("ZCARD", KEYS[base + 5]))
  if want == "mark" then
    answer = answer .. sub(record, 72, 77) .. sub(record, 16, 21)
  elseif want ~= "status" then
    local clears, sequence = read(">I6I6", want, index * 12 + 1)
    local settled = read(">I6", record, 72) > clears or not remains(base, sequence)
    answer = answer .. (settled and "\1" or "\0")
  end
  result[index + 2] = answer
end
return table.concat(result)
