-- A robot's description from experiment_cfg/metadata.json and a data configuration.
--
-- `given` = { robots, orders, embodiment, data }: the metadata by tag; by tag the keys of cameras, state and actions in
-- the order of the file; the tag; and a data configuration: a name of data.lua or a table like one of its. Without one:
-- that of data.lua with the tag and the keys of the file; else all keys of the file, each from min to max.
-- Where a processor was saved beside the model, that one says all of it (modality/robot.lua).
if given.processor then return include "modality/robot.lua" end
local steps <const>, known <const> = include("experiment/steps.lua"), include("experiment/data.lua")

local FILE <const> = "experiment_cfg/metadata.json: "

local names <const> = include "pipeline/names.lua"

local robots <const> = given.robots
if not robots then
  error("this robot is read from a checkpoint with experiment_cfg/metadata.json: give one with --weights DIR", 0)
end

if not next(robots) then error(FILE .. "has no robot", 0) end
local tag = given.embodiment
if not tag and next(robots) and not next(robots, next(robots)) then tag = next(robots) end
if not tag then
  error("which robot? say --embodiment TAG, or embodiment = TAG in the model of a file; the checkpoint knows "
        .. names(robots), 0)
end
local robot <const> = robots[tag]
if not robot then error("embodiment '" .. tostring(tag) .. "': the checkpoint knows " .. names(robots), 0) end
if type(robot) ~= "table" then error(FILE .. tag .. ": must be an object, is " .. tostring(robot), 0) end
local order <const> = given.orders[tag]

-- An object of the file; absent, it is empty.
local function object(of, key, at)
  if of[key] ~= nil and type(of[key]) ~= "table" then
    error(FILE .. tag .. "." .. at .. key .. ": must be an object, is " .. tostring(of[key]), 0)
  end
  return of[key] or {}
end
local modalities <const>, statistics <const> = object(robot, "modalities", ""), object(robot, "statistics", "")
for _, what in ipairs { "video", "state", "action" } do
  object(modalities, what, "modalities.")
  object(statistics, what, "statistics.")
end

-- Whether the file has all keys of a configuration.
local function has(config)
  for _, what in ipairs { "video", "state", "action" } do
    for _, key in ipairs(config[what]) do
      if not (modalities[what] and modalities[what][key]) then return false end
    end
  end
  return config.tag == tag
end

local config = given.data
if type(config) == "string" then
  config = known[config] or error("data configuration '" .. config .. "': known are " .. names(known), 0)
end
if not config then
  for _, one in pairs(known) do
    if not config and has(one) then config = one end
  end
end
if not config then
  local function modes(keys)
    local all = {}
    for _, key in ipairs(keys) do all[key] = "min_max" end
    return all
  end
  config = { video = order.video, state = order.state, action = order.action,
             state_modes = modes(order.state), action_modes = modes(order.action) }
end

-- The parts of a vector.
local function parts(what, keys, modes, targets)
  local list = {}
  for i, key in ipairs(keys) do
    local m = modalities[what] and modalities[what][key]
    local shape = type(m) == "table" and m.shape
    if type(shape) ~= "table" or #shape ~= 1 or math.type(shape[1]) ~= "integer" or shape[1] < 1 then
      error(FILE .. tag .. ".modalities." .. what .. "." .. key .. ": must have the length of a vector as shape", 0)
    end
    list[i] = { key = key, size = shape[1], mode = modes and modes[key] or "none",
                statistics = statistics[what] and statistics[what][key], rotation = m.rotation_type,
                target = targets and targets[key], at = FILE .. tag .. ".statistics." .. what .. "." .. key }
  end
  return list
end

local state <const> = parts("state", config.state, config.state_modes, config.state_targets)
local action <const> = parts("action", config.action, config.action_modes, config.action_targets)

local cameras, inputs, outputs, sent = {}, {}, {}, 0
for i, key in ipairs(config.video) do cameras[i] = { slot = "video." .. key, input = "video." .. key } end
for i, part in ipairs(state) do inputs[i] = { input = "state." .. part.key, size = part.size } end
for i, part in ipairs(action) do
  outputs[i] = { name = part.key, size = part.size }
  sent = sent + part.size
end

return {
  name    = tag,
  cameras = cameras,
  resize  = "crop-95",
  state   = { inputs = inputs, ops = steps.state(state) },
  actions = { size = sent, ops = steps.actions(action), relative = config.relative,
              limits = steps.limits(action), outputs = outputs },
  norm    = { mode = "none" },
  prompt  = { input = config.language or "annotation.human.task_description", template = "eagle" .. #cameras },
}
