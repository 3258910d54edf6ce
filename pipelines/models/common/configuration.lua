-- What descriptions share that read a Hugging Face config.json: numbers that were looked at, and refusals that name the
-- file and the field.
local read <const> = {}

-- A value in a message: texts in quotes.
local function shown(x)
  if type(x) == "table" then return "a list or an object" end
  return type(x) == "string" and "'" .. x .. "'" or tostring(x)
end

-- The path below `tree` of the first table that is `fits`; nil: there is none.
local function find(tree, fits, path, depth)
  if fits(tree) then return path end
  for key, value in pairs(tree) do
    if type(value) == "table" and type(key) == "string" and depth < 8 then
      local found = find(value, fits, path .. key .. ".", depth + 1)
      if found then return found end
    end
  end
end

-- Where the field stands: in a file of what is given, in this very table or, of one that was copied, with this value.
local function place(t, key)
  local files = { ["config.json"] = given.config }
  for _, folder in pairs(given.folders or {}) do
    if folder.config then files["config.json of " .. tostring(folder.name)] = folder.config end
  end
  local function here(x) return x == t end
  local function same(x) return t[key] ~= nil and x[key] == t[key] end
  for _, fits in ipairs { here, same } do
    local path = given.config and find(given.config, fits, "", 0)
    if path then return "config.json: " .. path end
    for name, file in pairs(files) do
      path = find(file, fits, "", 0)
      if path then return name .. ": " .. path end
    end
  end
  return given.config and "config.json: " or ""
end

-- An error at a field: what it must be, or why its value is refused.
function read.refuse(t, key, what) error(place(t, key) .. key .. ": " .. what, 0) end

-- A whole number 1 .. 2^20, or up to `most`, or its default. JSON's null is as absent.
function read.count(t, key, default, most)
  local n = t[key]
  if n == nil then n = default end
  if math.type(n) == "float" and n == n // 1 then n = math.tointeger(n) end
  if math.type(n) ~= "integer" or n < 1 or n > (most or 1 << 20) then
    read.refuse(t, key, "must be a whole number of 1 .. " .. (most or "2^20") .. ", is " .. shown(n))
  end
  return n
end

function read.number(t, key, default)
  local x = t[key]
  if x == nil then x = default end
  if math.type(x) == nil then read.refuse(t, key, "must be a number, is " .. shown(x)) end
  return x + 0.0
end

-- Steps of a flow.
function read.steps(t, key, default) return read.count(t, key, default, 1000) end

-- Between which periods the time's sines and cosines lie.
function read.periods(c)
  local shortest <const>, longest <const> = read.number(c, "min_period", 0.004), read.number(c, "max_period", 4.0)
  if shortest < 1e-6 or shortest >= longest or longest > 1e9 then
    local key <const> = shortest < 1e-6 and "min_period" or "max_period"
    read.refuse(c, key, "periods must rise between 1e-6 and 1e9, are " .. shortest .. " and " .. longest)
  end
  return shortest, longest
end

read.shown = shown
return read
