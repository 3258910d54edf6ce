-- What derived pipelines are written with: pieces of Lua text, in lists. A piece is a string or number as it is, or
-- { quote = s } as a string of Lua.
local text <const> = {}

function text.quote(s) return { quote = s } end

-- Names that need no quotes.
local plain <const> = { "name", "slot", "input", "inputs", "size", "op", "ops", "at", "mode", "template", "state",
                        "max_tokens", "missing", "precision", "normalised", "decode", "truncate", "keep", "by",
                        "low", "high", "horn", "arm", "of", "limits", "min", "max",
                        "max_rows", "outputs", "relative" }
local is_plain = {}
for _, name in ipairs(plain) do is_plain[name] = true end

function text.literal(v)
  if type(v) == "string" then return text.quote(v) end
  if math.type(v) then return { v } end -- in as many digits as it has
  if type(v) ~= "table" then return { tostring(v) } end
  local parts, first = { "{" }, true
  local function add(...)
    parts[#parts + 1] = first and " " or ", "
    first = false
    for _, piece in ipairs { ... } do parts[#parts + 1] = piece end
  end
  for key, x in pairs(v) do
    if type(key) ~= "string" then add(text.literal(x))
    elseif is_plain[key] then add(key .. " = ", text.literal(x))
    else add("[", text.quote(key), "] = ", text.literal(x)) end
  end
  parts[#parts + 1] = first and "}" or " }"
  return parts
end

-- A document, and a function that adds a line to it.
function text.document()
  local doc = {}
  local function line(...)
    for _, piece in ipairs { ... } do doc[#doc + 1] = piece end
    doc[#doc + 1] = "\n"
  end
  return doc, line
end

return text
