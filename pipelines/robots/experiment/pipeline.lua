-- The pipeline of a checkpoint with experiment_cfg/metadata.json, as the text of a file that can be edited.
--
-- `given` as of robot.lua, and `numbers` = { sizes, tokens, horizon, width } of the model with `weights` = the folder.
-- Without them the value is the name of the model's description.
local types <const> = { gr00t_n1_5 = "groot_n15" }

local config <const> = given.config or {}
local arch <const> = types[config.model_type or ""]
if not arch then
  error("config.json: model_type: '" .. tostring(config.model_type) .. "' with experiment_cfg is not run by this "
        .. "release; it runs gr00t_n1_5", 0)
end
local robot <const> = include "experiment/robot.lua"
if not given.numbers then return arch end
local numbers <const> = given.numbers

local text <const> = include "pipeline/text.lua"
local quote <const>, literal <const> = text.quote, text.literal
local doc <const>, line <const> = text.document()

-- Tokens of the chat around the instruction, and of the instruction.
local MOST <const> = 256

-- What the metadata says of the cameras; else LeRobot's default for recording.
local rate = 30
for _, camera in pairs((given.robots[robot.name].modalities or {}).video or {}) do
  if math.type(camera.fps) and camera.fps > 0 then rate = camera.fps end
end

local reads = {}
local function read(name)
  reads[#reads + 1] = #reads > 0 and ",\n                        " or " "
  reads[#reads + 1] = quote(name)
end
for _, camera in ipairs(robot.cameras) do read(camera.input) end
for _, part in ipairs(robot.state.inputs) do read(part.input) end
read(robot.prompt.input)

line("-- ", arch, " for the robot ", quote(robot.name), " of experiment_cfg/metadata.json, written by `tectum init`.")
line("-- The file says how often its cameras were read, not how often the robot is commanded: look at both numbers.")
line("local RATE_HZ <const> = ", tostring(rate))
line("local EXECUTE <const> = ", numbers.horizon, " -- actions of a chunk before the next observation")
line()
line("return pipeline {")
line("  name   = ", quote(arch), ",")
line("  schema = 1,")
line("  model  = model { arch = ", quote(arch), ", weights = ", quote(given.weights), ",")
line("                   embodiment = ", quote(robot.name), " },")
line()
line("  robot  = {")
line("    name    = ", quote(robot.name), ",")
line("    cameras = {")
for _, camera in ipairs(robot.cameras) do line("      ", literal(camera), ",") end
line("    },")
for _, key in ipairs { "resize", "state", "actions", "norm", "prompt" } do
  line("    ", key, " = ", literal(robot[key]), ",")
end
line("    rate_hz = RATE_HZ, execute = EXECUTE,")
line("  },")
line()
line("  -- A frame for each observation. Without a deadline a late chunk leaves when it is ready: say")
line("  -- deadline = hard { ms = ..., on_miss = ... } at the action node for a robot that must not wait.")
line("  frame  = frame { period_ms = 1000 * EXECUTE / RATE_HZ, clock = \"external\" },")
line()
line("  inputs = {")
local side <const> = numbers.sizes[1]
for _, camera in ipairs(robot.cameras) do
  line("    image  { name = ", quote(camera.input), ", h = ", side[1], ", w = ", side[2], " },")
end
for _, part in ipairs(robot.state.inputs) do
  line("    tensor { name = ", quote(part.input), ", shape = { ", part.size, " } },")
end
line("    text   { name = ", quote(robot.prompt.input), ", max_tokens = ", MOST, " },")
line("  },")
line()
line("  resources = {")
line("    kv.frame { name = \"obs\", tokens = ", #robot.cameras * numbers.tokens + MOST, " },")
line("    buffer   { name = \"chunk\", shape = { ", numbers.horizon, ", ", numbers.width, " } },")
line("  },")
line()
line("  nodes = {")
line("    prefill { name = \"see\", writes = \"obs\",")
line("              reads = {", reads, " } },")
line("    action  { name = \"act\", kv = \"obs\", out = \"chunk\" },")
line("  },")
line("}")
return doc
