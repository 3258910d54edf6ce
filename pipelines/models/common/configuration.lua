-- What descriptions share that read a Hugging Face config.json: numbers that were looked at.
local read <const> = {}

-- A value in a message: texts in quotes.
local function shown(x) return type(x) == "string" and "'" .. x .. "'" or tostring(x) end

-- A whole number 1 .. 2^20, or its default. JSON's null is as absent.
function read.count(t, key, default)
  local n = t[key]
  if n == nil then n = default end
  if math.type(n) == "float" and n == n // 1 then n = math.tointeger(n) end
  if math.type(n) ~= "integer" or n < 1 or n > 1 << 20 then
    error(key .. " must be a whole number of 1 .. 2^20, is " .. shown(n), 0)
  end
  return n
end

function read.number(t, key, default)
  local x = t[key]
  if x == nil then x = default end
  if math.type(x) == nil then error(key .. " must be a number, is " .. shown(x), 0) end
  return x + 0.0
end

return read
