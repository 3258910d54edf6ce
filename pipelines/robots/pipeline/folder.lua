-- The pipeline of one robot that a checkpoint's files describe, as the text of a file that can be edited: a function
-- of what those files say.
--
-- robot, sizes      of robot.lua; sizes[i] = { height, width } of the picture of camera i
-- arch, weights     the model's description, and the checkpoint's folder; embodiment: the robot's name in it, or nil
-- about             lines of comment at the head; a name from the checkpoint's files is a quoted piece of its line
-- rate, execute     commands a second, rows of a chunk before the next observation; of: where execute is said, or nil
-- rows, text        tokens of the prefix, and of the instruction at most
-- horizon, width    of the chunk
-- inputs, guide     lines of further inputs, and of the action node, or nil
local text <const> = include "pipeline/text.lua"
local quote <const>, literal <const> = text.quote, text.literal

-- Fields of a robot that have a line each, aligned.
local gap <const> = { resize = "  ", edge = "    ", middle = "  ", state = "   ", actions = " ",
                      norm = "    ", prompt = "  " }

local function write_robot(line, robot)
  line("  robot  = {")
  line("    name    = ", quote(robot.name), ",")
  line("    cameras = {")
  for _, camera in ipairs(robot.cameras) do line("      ", literal(camera), ",") end
  line("    },")
  for _, key in ipairs { "resize", "edge", "middle", "state", "actions", "norm", "prompt" } do
    if robot[key] ~= nil then line("    ", key, gap[key], "= ", literal(robot[key]), ",") end
  end
  for key, value in pairs(robot) do
    local written = gap[key] or key == "name" or key == "cameras" or key == "execute"
    if not written then line("    [", quote(key), "] = ", literal(value), ",") end
  end
  line("    rate_hz = RATE_HZ, execute = EXECUTE,")
  line("  },")
end

local function write_inputs(line, p)
  line("  inputs = {")
  for i, camera in ipairs(p.robot.cameras) do
    if camera.input then
      line("    image  { name = ", quote(camera.input), ", h = ", p.sizes[i][1], ", w = ", p.sizes[i][2], " },")
    end
  end
  for _, part in ipairs(p.robot.state.inputs) do
    line("    tensor { name = ", quote(part.input), ", shape = { ", part.size, " } },")
  end
  if p.robot.prompt then
    line("    text   { name = ", quote(p.robot.prompt.input), ", max_tokens = ", p.text, " },")
  end
  for _, more in ipairs(p.inputs or {}) do line("    ", more) end
  line("  },")
end

-- The names of all inputs, one below the other.
local function reads(robot)
  local list = {}
  local function read(name)
    list[#list + 1] = #list > 0 and ",\n                        " or " "
    list[#list + 1] = quote(name)
  end
  for _, camera in ipairs(robot.cameras) do
    if camera.input then read(camera.input) end
  end
  for _, part in ipairs(robot.state.inputs) do read(part.input) end
  if robot.prompt then read(robot.prompt.input) end
  return list
end

return function(p)
  local doc <const>, line <const> = text.document()
  for _, comment in ipairs(p.about) do line("-- ", comment) end
  line("local RATE_HZ <const> = ", tostring(p.rate))
  line("local EXECUTE <const> = ", p.execute, " -- actions of a chunk before the next observation", p.of or "")
  line()
  line("return pipeline {")
  line("  name   = ", quote(p.arch), ",")
  line("  schema = 1,")
  line("  model  = model { arch = ", quote(p.arch), ", weights = ", quote(p.weights), p.embodiment and "," or " },")
  if p.embodiment then line("                   embodiment = ", quote(p.embodiment), " },") end
  line()
  write_robot(line, p.robot)
  line()
  line("  -- A frame for each observation. Without a deadline a late chunk leaves when it is ready: say")
  line("  -- deadline = hard { ms = ..., on_miss = ... } at the action node for a robot that must not wait.")
  line("  frame  = frame { period_ms = 1000 * EXECUTE / RATE_HZ, clock = \"external\" },")
  line()
  write_inputs(line, p)
  line()
  line("  resources = {")
  line("    kv.frame { name = \"obs\", tokens = ", p.rows, " },")
  line("    buffer   { name = \"chunk\", shape = { ", p.horizon, ", ", p.width, " } },")
  line("  },")
  line()
  line("  nodes = {")
  line("    prefill { name = \"see\", writes = \"obs\",")
  line("              reads = {", reads(p.robot), " } },")
  line("    action  { name = \"act\", kv = \"obs\", out = \"chunk\"", p.guide and "," or " },")
  for _, more in ipairs(p.guide or {}) do line("              ", more) end
  line("  },")
  line("}")
  return doc
end
