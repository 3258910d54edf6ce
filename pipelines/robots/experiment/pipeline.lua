-- The pipeline of a checkpoint with experiment_cfg/metadata.json, or with a processor that was saved beside the model,
-- as the text of a file that can be edited.
--
-- `given` as of robot.lua, and `numbers` = { sizes, tokens, horizon, width } of the model with `weights` = the folder.
-- Without them the value is the name of the model's description.
local types <const> = { gr00t_n1_5 = { arch = "groot_n15", file = "experiment_cfg/metadata.json" },
                        Gr00tN1d6 = { arch = "groot_n16", file = "processor_config.json", processor = true },
                        Gr00tN1d7 = { arch = "groot_n17", file = "processor_config.json", processor = true } }

local config <const> = given.config or {}
local kind <const> = types[config.model_type or ""]
if not kind or not kind.processor ~= not given.processor then
  error("config.json: model_type: '" .. tostring(config.model_type) .. "' with "
        .. (given.processor and "processor_config.json" or "experiment_cfg") .. " is not run by this release; it runs "
        .. "gr00t_n1_5 with experiment_cfg, and Gr00tN1d6 and Gr00tN1d7 with processor_config.json", 0)
end
local arch <const> = kind.arch
local robot <const> = include "experiment/robot.lua"
if not given.numbers then return arch end
local numbers <const> = given.numbers

-- Tokens of the chat around the instruction, and of the instruction.
local MOST <const> = 256

local execute <const> = robot.actions.max_rows or numbers.horizon
if execute > numbers.horizon then
  error('processor_config.json: processor_kwargs.modality_configs["' .. robot.name .. '"].action.delta_indices: has '
        .. execute .. " steps, the model's chunk " .. numbers.horizon, 0)
end

-- What the metadata says of the cameras; else LeRobot's default for recording.
local rate = 30
for _, camera in pairs((given.robots[robot.name].modalities or {}).video or {}) do
  if type(camera) == "table" and math.type(camera.fps) and camera.fps > 0 then rate = camera.fps end
end

local sizes = {}
for i = 1, #robot.cameras do sizes[i] = numbers.sizes[1] end

return include("pipeline/folder.lua") {
  robot = robot, sizes = sizes, arch = arch, weights = given.weights, embodiment = robot.name,
  about = {
    { arch, " for the robot ", { quote = robot.name },
      " of " .. kind.file .. ", written by `tectum init`." },
    kind.processor and "The folder does not say how often the robot is commanded: look at both numbers."
    or "The file says how often its cameras were read, not how often the robot is commanded: look at both numbers.",
  },
  rate = rate, execute = execute, text = MOST, rows = #robot.cameras * numbers.tokens + MOST,
  horizon = numbers.horizon, width = numbers.width,
}
