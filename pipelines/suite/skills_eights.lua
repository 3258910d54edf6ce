-- What qwen_skills.lua ranks in one forward, as batches of eight texts, seven of the 27: rows of
-- `tectum profile` to hold against that of `choose` (doc/skills.md).
local skills <const> = include("skills/household.lua")

local function eight(number)
  local some = {}
  for i = 1, 8 do some[i] = skills[(number - 1) * 8 + i] end
  return score { name = "eight" .. number, kv = "context", candidates = some, spawn = on_request(),
                 out = stream("skill" .. number), deadline = soft { ms = 1000, on_miss = "continue" } }
end

return extend("qwen_skills.lua", {
  name  = "skills_eights",
  nodes = { without "choose", without "say", eight(1), eight(5), eight(9), eight(13), eight(17), eight(21),
            eight(25) },
})
