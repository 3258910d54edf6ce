-- The pipeline of a LeRobot checkpoint, as the text of a file that can be edited.
--
-- `given` as of robot.lua, and `numbers` = { sizes, tokens, rows, horizon, width } of the model with `weights` = the
-- folder. Without them the value is the name of the model's description. With them it is { text, unread }: the text
-- in pieces (pipeline/text.lua), and warnings of what is renamed to a name that no feature has.
--
-- The files do not say how often the robot is commanded.
local RATE_HZ <const> = 30 -- LeRobot's own default for recording

local robot <const> = include "lerobot/robot.lua"
local kind <const> = include("lerobot/types.lua")[given.config.type]
if not given.numbers then return kind.arch end
local numbers <const> = given.numbers

local sent = 0
for _, camera in ipairs(robot.cameras) do
  if camera.input then sent = sent + 1 end
end

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

-- Guidance: further inputs, and fields of the action node.
local inputs, guide
if rtc then
  local schedule <const> = include("lerobot/guides.lua")[rtc.prefix_attention_schedule or "LINEAR"]
  inputs = {
    "-- What is left of the chunk before, from this observation on, in the robot's units; and how many of",
    "-- its rows are executed until the new chunk is there. The first chunk has neither.",
    "tensor { name = \"prev_chunk_left_over\", shape = { " .. numbers.horizon .. ", " .. robot.actions.size .. " } },",
    "tensor { name = \"inference_delay\", shape = { 1 } },",
  }
  guide = {
    "guide = { previous = \"prev_chunk_left_over\", delay_input = \"inference_delay\",",
    "          schedule = \"" .. schedule .. "\", max_guidance_weight = " .. tostring(rtc.max_guidance_weight or 10)
      .. ", execution_horizon = " .. tostring(rtc.execution_horizon or 10) .. " } },",
  }
end

-- What a rename leads to and nobody reads is most often a misspelt feature. LeRobot says nothing and goes on.
local unread <const>, features = {}, ""
for name in pairs(given.config.input_features) do
  features = features .. (features == "" and "'" or ", '") .. name .. "'"
end
for i, step in ipairs(given.preprocessor.steps) do
  local map = step.registry_name == "rename_observations_processor" and step.config and step.config.rename_map
  local becomes <const> = {}
  for _, new in pairs(map or {}) do becomes[new] = true end
  for old, new in pairs(map or {}) do
    if not given.config.input_features[new] then
      local kept = given.config.input_features[old] and not becomes[old]
      unread[#unread + 1] = "policy_preprocessor.json: steps[" .. (i - 1) .. '].config.rename_map["' .. old .. '"]: '
        .. "'" .. new .. "' is no feature of config.json, so '" .. old .. "' "
        .. (kept and "is read by its own name, and LeRobot finds none" or "is not read")
        .. "; features are " .. features
    end
  end
end

local text <const> = include("pipeline/folder.lua") {
  robot = robot, sizes = numbers.sizes, arch = kind.arch, weights = given.weights,
  about = {
    kind.arch .. " as the files of a LeRobot checkpoint describe it, written by `tectum init`.",
    "The checkpoint does not say how often its robot is commanded: " .. RATE_HZ .. " Hz is LeRobot's default.",
  },
  rate = RATE_HZ, execute = execute, of = ": n_action_steps", text = most, rows = rows,
  horizon = numbers.horizon, width = numbers.width, inputs = inputs, guide = guide,
}
return { text = text, unread = unread }
