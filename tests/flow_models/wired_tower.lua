-- A picture tower of no paper in front of SmolVLM's text. How each layer is wired is drawn by tests/wired_towers.py,
-- which says it in config.json and computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "wired_tower" then return false end
c.model_type = "smolvlm"
local model <const> = include("smolvlm.lua")
local tower <const> = model.vision.towers[1]
tower.leave = nil
for key, value in pairs(include("common/wired_layers.lua")(c.wired_tower)) do tower[key] = value end
return model
