-- What descriptions share that read a Hugging Face config.json: numbers that were looked at, and refusals that name the
-- file and the field.
local read <const> = {}

-- The number of a list's last value, JSON's null left out; nil: it is an object.
local function last(x)
  local n = 0
  for i in pairs(x) do
    if math.type(i) ~= "integer" then return nil end
    n = math.max(n, i)
  end
  return n
end

-- A value in a message: texts in quotes.
local function shown(x)
  if x == nil then return "missing" end
  if type(x) == "table" then return next(x) == nil and "empty" or last(x) and "a list" or "an object" end
  return type(x) == "string" and "'" .. x .. "'" or tostring(x)
end

-- A field's name, or a place in a list as JSON counts.
local function named(key) return math.type(key) == "integer" and tostring(key - 1) or key end

-- The path below `tree` of the first table that is `fits`; nil: there is none.
local function find(tree, fits, path, depth)
  if fits(tree) then return path end
  for key, value in pairs(tree) do
    if type(value) == "table" and depth < 8 then
      local found = find(value, fits, path .. named(key) .. ".", depth + 1)
      if found then return found end
    end
  end
end

-- Where the field stands: in a file of what is given, in this very table or, of one that was copied, with this value.
local function place(t, key)
  local files = { ["generation_config.json"] = given.generation, ["preprocessor_config.json"] = given.preprocessor }
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
function read.refuse(t, key, what) error(place(t, key) .. named(key) .. ": " .. what, 0) end

-- 7.0 as 7; any other value as it is.
function read.integral(x) return math.type(x) == "float" and math.tointeger(x) or x end

-- A whole number 1 .. 2^20, or up to `most`, or its default. JSON's null is as absent.
function read.count(t, key, default, most)
  local n = t[key]
  if n == nil then n = default end
  n = read.integral(n)
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

-- A number above `least` and below `most`, or 1e30; its words in a message are the same for every field.
function read.above(t, key, least, default, most)
  local x = read.number(t, key, default)
  most = most or 1e30
  if not (x > least and x < most) then
    read.refuse(t, key, string.format("must be above %g and below %g, is %g", least, most, x))
  end
  return x
end

-- The cap of a score or a logit; absent, there is none.
function read.cap(t, key)
  return t[key] ~= nil and read.above(t, key, 0.0) or nil
end

-- true or false, or its default.
function read.flag(t, key, default)
  local x = t[key]
  if x == nil then x = default end
  if type(x) ~= "boolean" then read.refuse(t, key, "must be true or false, is " .. shown(x)) end
  return x
end

-- One of a set of words, or its default.
function read.word(t, key, words, default)
  local x = t[key]
  if x == nil then x = default end
  local list = nil
  for _, word in ipairs(words) do
    if x == word then return x end
    list = list and list .. " or " .. word or word
  end
  read.refuse(t, key, shown(x) .. " is not supported; it must be " .. list)
end

-- A field that may have one value alone; absent, it has that one.
function read.only(t, key, value)
  if t[key] ~= nil and t[key] ~= value then
    read.refuse(t, key, "must be " .. tostring(value) .. ", is " .. shown(t[key]))
  end
end

-- A part of a configuration that is an object; absent, it is empty.
function read.part(t, key)
  local x = t[key]
  if x == nil then return {} end
  if type(x) ~= "table" or (last(x) or 0) > 0 then read.refuse(t, key, "must be an object, is " .. shown(x)) end
  return x
end

-- A list and the number of its last value, for null is a hole in it; absent, it is empty.
function read.list(t, key)
  local x = t[key]
  if x == nil then return {}, 0 end
  local n <const> = type(x) == "table" and last(x)
  if not n then read.refuse(t, key, "must be a list, is " .. shown(x)) end
  return x, n
end

-- Heads of keys, each of as many heads of queries.
function read.kv_heads(t, heads, default)
  local n = read.count(t, "num_key_value_heads", default)
  if heads % n ~= 0 then
    read.refuse(t, "num_key_value_heads", n .. " do not divide num_attention_heads " .. heads)
  end
  return n
end

-- The numbers of a head that is rotated, which are pairs; without a default its share of the width.
function read.head_dim(t, width, heads, default)
  if t.head_dim == nil and not default and width % heads ~= 0 then
    read.refuse(t, "num_attention_heads", heads .. " do not divide hidden_size " .. width)
  end
  local dim = read.count(t, "head_dim", default or width // heads)
  if dim % 2 ~= 0 then
    read.refuse(t, t.head_dim ~= nil and "head_dim" or "num_attention_heads",
                "a head of " .. dim .. " numbers cannot be rotated: they must be pairs")
  end
  return dim
end

-- A token of the vocabulary.
function read.token(t, key, vocab, id)
  if math.type(id) ~= "integer" or id < 0 or id >= vocab then
    read.refuse(t, key, "must be a token of 0 .. " .. vocab - 1 .. ", is " .. shown(id))
  end
  return id
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
