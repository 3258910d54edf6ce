-- A picture tower of no paper in front of SmolVLM's text. How each layer is wired is drawn by tests/wired_towers.py,
-- which says it in config.json and computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "wired_tower" then return false end
c.model_type = "smolvlm"
local model <const> = include("smolvlm.lua")
local tower <const> = model.vision.towers[1]
local enter <const>, wired <const> = tower.enter, include("common/wired_layers.lua")(c.wired_tower)
tower.leave = nil
for key, value in pairs(wired) do tower[key] = value end
function tower.enter(g, x)
  x = enter(g, x)
  return wired.enter and wired.enter(g, x) or x
end
return model
