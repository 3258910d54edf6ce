-- The pipeline of a LeRobot checkpoint, as the text of a file that can be edited.
--
-- `given` as of robot.lua, and `numbers` = { sizes, tokens, rows, horizon, width } of the model with `weights` = the
-- folder. Without them the value is the name of the model's description. With them it is a list, in lists, of
-- pieces of the text: a string or number as it is, { quote = s } as a string of Lua.
--
-- The files do not say how often the robot is commanded.
local RATE_HZ <const> = 30 -- LeRobot's own default for recording

local robot <const> = include "lerobot/robot.lua"
local kind <const> = include("lerobot/types.lua")[given.config.type]
if not given.numbers then return kind.arch end
local numbers <const> = given.numbers

local text <const> = include "pipeline/text.lua"
local quote <const>, literal <const> = text.quote, text.literal
local doc <const>, line <const> = text.document()

-- --- what there is -------------------------------------------------------------------------------

local reads, sent = {}, 0
local function read(name)
  reads[#reads + 1] = #reads > 0 and ",\n                        " or " "
  reads[#reads + 1] = quote(name)
end
for _, camera in ipairs(robot.cameras) do
  if camera.input then
    read(camera.input)
    sent = sent + 1
  end
end
for _, part in ipairs(robot.state.inputs) do read(part.input) end
if robot.prompt then read(robot.prompt.input) end

local most <const> = robot.prompt and robot.prompt.max_tokens or 0
local own <const> = kind.rows and kind.rows(sent, numbers.tokens, most) or sent * numbers.tokens + most
local rows <const> = robot.prompt and own or numbers.rows
local execute <const> = math.type(robot.execute) == "integer" and robot.execute or numbers.horizon
if execute < 1 or execute > numbers.horizon then
  error("config.json: n_action_steps: " .. execute .. " of a chunk of " .. numbers.horizon .. " actions", 0)
end

local rtc = given.config.rtc_config
if type(rtc) ~= "table" or not rtc.enabled then rtc = nil end

local resolution <const>, first <const> = given.config.image_resolution, numbers.sizes[1]
if type(resolution) == "table" and first and (resolution[1] ~= first[1] or resolution[2] ~= first[2]) then
  error("config.json: image_resolution: the model takes pictures of " .. first[1] .. " x " .. first[2], 0)
end

-- --- the text ------------------------------------------------------------------------------------

line("-- ", kind.arch, " as the files of a LeRobot checkpoint describe it, written by `tectum init`.")
line("-- The checkpoint does not say how often its robot is commanded: ", RATE_HZ, " Hz is LeRobot's default.")
line("local RATE_HZ <const> = ", RATE_HZ)
line("local EXECUTE <const> = ", execute, " -- actions of a chunk before the next observation: n_action_steps")
line()
line("return pipeline {")
line("  name   = ", quote(kind.arch), ",")
line("  schema = 1,")
line("  model  = model { arch = ", quote(kind.arch), ", weights = ", quote(given.weights), " },")
line()
line("  robot  = {")
line("    name    = ", quote(robot.name), ",")
line("    cameras = {")
for _, camera in ipairs(robot.cameras) do line("      ", literal(camera), ",") end
line("    },")
local gap <const> = { resize = "  ", state = "   ", actions = " ", norm = "    ", prompt = "  " }
for _, key in ipairs { "resize", "state", "actions", "norm", "prompt" } do
  if robot[key] ~= nil then line("    ", key, gap[key], "= ", literal(robot[key]), ",") end
end
for key, value in pairs(robot) do
  local written = gap[key] or key == "name" or key == "cameras" or key == "execute"
  if not written then line("    [", quote(key), "] = ", literal(value), ",") end
end
line("    rate_hz = RATE_HZ, execute = EXECUTE,")
line("  },")
line()
line("  -- A frame for each observation. Without a deadline a late chunk leaves when it is ready: say")
line("  -- deadline = hard { ms = ..., on_miss = ... } at the action node for a robot that must not wait.")
line("  frame  = frame { period_ms = 1000 * EXECUTE / RATE_HZ, clock = \"external\" },")
line()
line("  inputs = {")
for i, camera in ipairs(robot.cameras) do
  if camera.input then
    local size <const> = numbers.sizes[i]
    line("    image  { name = ", quote(camera.input), ", h = ", size[1], ", w = ", size[2], " },")
  end
end
for _, part in ipairs(robot.state.inputs) do
  line("    tensor { name = ", quote(part.input), ", shape = { ", part.size, " } },")
end
if robot.prompt then line("    text   { name = ", quote(robot.prompt.input), ", max_tokens = ", most, " },") end
if rtc then
  line("    -- What is left of the chunk before, from this observation on, in the robot's units; and how many of")
  line("    -- its rows are executed until the new chunk is there. The first chunk has neither.")
  line("    tensor { name = \"prev_chunk_left_over\", shape = { ", numbers.horizon, ", ", robot.actions.size, " } },")
  line("    tensor { name = \"inference_delay\", shape = { 1 } },")
end
line("  },")
line()
line("  resources = {")
line("    kv.frame { name = \"obs\", tokens = ", rows, " },")
line("    buffer   { name = \"chunk\", shape = { ", numbers.horizon, ", ", numbers.width, " } },")
line("  },")
line()
line("  nodes = {")
line("    prefill { name = \"see\", writes = \"obs\",")
line("              reads = {", reads, " } },")
if rtc then
  line("    action  { name = \"act\", kv = \"obs\", out = \"chunk\",")
  line("              guide = { previous = \"prev_chunk_left_over\", delay_input = \"inference_delay\",")
  local schedule <const> = include("lerobot/guides.lua")[rtc.prefix_attention_schedule or "LINEAR"]
  line("                        schedule = ", quote(schedule),
       ", max_guidance_weight = ", tostring(rtc.max_guidance_weight or 10), ", execution_horizon = ",
       tostring(rtc.execution_horizon or 10), " } },")
else
  line("    action  { name = \"act\", kv = \"obs\", out = \"chunk\" },")
end
line("  },")
line("}")
return doc
