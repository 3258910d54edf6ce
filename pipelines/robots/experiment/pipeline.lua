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

-- Tokens of the chat around the instruction, and of the instruction.
local MOST <const> = 256

-- What the metadata says of the cameras; else LeRobot's default for recording.
local rate = 30
for _, camera in pairs((given.robots[robot.name].modalities or {}).video or {}) do
  if math.type(camera.fps) and camera.fps > 0 then rate = camera.fps end
end

local sizes = {}
for i = 1, #robot.cameras do sizes[i] = numbers.sizes[1] end

return include("pipeline/folder.lua") {
  robot = robot, sizes = sizes, arch = arch, weights = given.weights, embodiment = robot.name,
  about = {
    { arch, " for the robot ", { quote = robot.name },
      " of experiment_cfg/metadata.json, written by `tectum init`." },
    "The file says how often its cameras were read, not how often the robot is commanded: look at both numbers.",
  },
  rate = rate, execute = numbers.horizon, text = MOST, rows = #robot.cameras * numbers.tokens + MOST,
  horizon = numbers.horizon, width = numbers.width,
}
