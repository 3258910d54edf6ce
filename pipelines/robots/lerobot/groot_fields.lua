-- Fields of a processor's step { at, config }: refusals at their place, and values that must be true or false.
local fields <const> = {}

function fields.refuse(step, field, what) error(step.at .. "." .. field .. ": " .. what, 0) end

function fields.flag(step, name, otherwise)
  local value = step.config[name]
  if value == nil then value = otherwise end
  if type(value) ~= "boolean" then fields.refuse(step, name, "must be true or false, is " .. tostring(value)) end
  return value
end

-- The float32 number nearest to x, by Veltkamp's splitting.
function fields.single(x)
  local far <const> = x * 536870913.0 -- 2^29 + 1
  return far - (far - x)
end

return fields
