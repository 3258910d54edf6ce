-- A robot's description from config.json and the two processors of a LeRobot checkpoint. Every step and
-- every field that changes numbers is looked at, or refused by its name.
--
-- `given` = { config, preprocessor, postprocessor, slots, relative, stored, adapter, bare }: the three files, the image
-- features in config.json's order, the columns of the actions that are changes of the state, counted from 1, statistics
-- of steps that are no normalizer by their names, whether an adapter is merged into the weights, and bare: whether
-- statistics may be missing, as weights are made up.

local CONFIG <const>, BEFORE <const>, AFTER <const> =
  "config.json: ", "policy_preprocessor.json: ", "policy_postprocessor.json: "

-- A message that begins with "FILE: FIELD: " is shown with the place of that field.
local function refuse(where, message) error(where .. ": " .. message, 0) end

local config <const> = given.config
if not config then
  error("this robot is read from a LeRobot checkpoint: give one with --weights DIR; what `tectum init DIR` "
        .. "writes runs without one, too", 0)
end

local names <const> = include "pipeline/names.lua"

local types <const> = include "lerobot/types.lua"
local kind <const> = types[config.type or ""]
if not kind then
  refuse(CONFIG .. "type", "'" .. tostring(config.type) .. "' is not run by this release; it runs " .. names(types))
end

-- --- what the configuration must not ask for ----------------------------------------------------

for name, what in pairs(kind.others or {}) do
  if config[name] ~= nil then refuse(CONFIG .. name, what) end
end
for _, name in ipairs(kind.off or {}) do
  if config[name] then refuse(CONFIG .. name, "is not supported") end
end
if config.use_peft and not given.adapter and not given.bare then
  refuse(CONFIG .. "use_peft", "the folder has no adapter: adapter_config.json and adapter_model.safetensors, without "
         .. "model.safetensors")
end
if config.n_obs_steps ~= nil and config.n_obs_steps ~= 1 then
  refuse(CONFIG .. "n_obs_steps", "observations of " .. tostring(config.n_obs_steps) .. " steps are not supported")
end
-- 7.0 as 7; any other value as it is.
local function integral(x) return math.type(x) == "float" and math.tointeger(x) or x end

local wanted <const> = integral(config.n_action_steps)
if wanted ~= nil and math.type(wanted) ~= "integer" then
  refuse(CONFIG .. "n_action_steps", "must be a whole number")
end
local function enabled(t, key) return type(t) == "table" and t[key] end
if config.rtc_config ~= nil and type(config.rtc_config) ~= "table" then
  refuse(CONFIG .. "rtc_config", "must be an object")
end
if enabled(config.rtc_config, "enabled") then
  local rtc <const> = config.rtc_config
  if not kind.guided then
    refuse(CONFIG .. "rtc_config.enabled", "only chunks that are denoised are guided; set it to false")
  end
  if rtc.mode ~= nil and rtc.mode ~= "guided" and rtc.mode ~= "GUIDED" then
    refuse(CONFIG .. "rtc_config.mode", "'" .. tostring(rtc.mode) .. "' is not supported; it must be guided")
  end
  if not include("lerobot/guides.lua")[rtc.prefix_attention_schedule or "LINEAR"] then
    refuse(CONFIG .. "rtc_config.prefix_attention_schedule", "must be ZEROS, ONES, LINEAR or EXP")
  end
end

-- --- features -----------------------------------------------------------------------------------

local function features(key)
  if type(config[key]) ~= "table" then refuse(CONFIG .. key, "must list the features") end
  return config[key]
end
local inputs <const>, outputs <const> = features "input_features", features "output_features"

local MOST <const> = { input_features = 1 << 16, output_features = 1024 } -- entries of a vector

local function length(key, name)
  local f = config[key][name]
  if f == nil then return nil end
  local shape = type(f) == "table" and f.shape
  if type(shape) ~= "table" or #shape ~= 1 or math.type(shape[1]) ~= "integer" or shape[1] < 1
    or shape[1] > MOST[key] then
    refuse(CONFIG .. key .. '["' .. name .. '"].shape', "must be the length of a vector, 1 .. " .. MOST[key])
  end
  return shape[1]
end

local function check_picture(name, shape)
  local good = type(shape) == "table" and #shape == 3 and shape[1] == 3
  for i = 2, 3 do good = good and math.type(shape[i]) == "integer" and shape[i] > 0 end
  if not good then refuse(CONFIG .. 'input_features["' .. name .. '"].shape', "must be [3, height, width]") end
end

-- How LeRobot casts weights: a pipeline says by its own dtype how it computes.
local dtypes <const> = { float32 = true, bfloat16 = true, float16 = true }
if config.dtype ~= nil and not dtypes[config.dtype] then
  refuse(CONFIG .. "dtype", "must be float32, bfloat16 or float16, is " .. tostring(config.dtype))
end

local known_inputs <const> = { ["observation.state"] = true }
for _, name in ipairs(kind.inputs or {}) do known_inputs[name] = true end
for name, f in pairs(inputs) do
  if not known_inputs[name] and not (type(f) == "table" and f.type == "VISUAL") then
    refuse(CONFIG .. 'input_features["' .. name .. '"]', config.type .. " does not read it")
  end
  if not known_inputs[name] then check_picture(name, f.shape) end
end

local state <const>, action <const> = length("input_features", "observation.state"), length("output_features", "action")
if not action then refuse(CONFIG .. "output_features", "has no action") end
if not state and #given.slots == 0 then refuse(CONFIG .. "input_features", "has neither pictures nor a state") end
for name in pairs(outputs) do
  if name ~= "action" then refuse(CONFIG .. 'output_features["' .. name .. '"]', "is not made; action alone is") end
end

-- --- steps of the processors --------------------------------------------------------------------

-- Batches and devices are the engine's own business.
local before_known <const> = {
  rename_observations_processor = true, to_batch_processor = true, device_processor = true,
  relative_actions_processor = true, normalizer_processor = true, tokenizer_processor = true,
}
local after_known <const> = {
  unnormalizer_processor = true, absolute_actions_processor = true, device_processor = true,
}
if kind.prompt then before_known[kind.prompt.step] = true end
for _, name in ipairs(kind.steps or {}) do before_known[name] = true end
local packs <const>, unpacks <const> = kind.packs or "normalizer_processor", kind.unpacks or "unnormalizer_processor"
before_known[packs], after_known[unpacks] = true, true

-- Options of the steps. Padding is the engine's own business, too: rows that only pad are not computed.
local options <const> = {
  rename_observations_processor = { rename_map = true },
  device_processor = { device = true, float_dtype = true },
  normalizer_processor = { features = true, norm_map = true, eps = true, normalize_observation_keys = true },
  -- of no effect on actions: LeRobot writes it for both
  unnormalizer_processor = { features = true, norm_map = true, eps = true, normalize_observation_keys = true },
  relative_actions_processor = { enabled = true, exclude_joints = true, action_names = true },
  absolute_actions_processor = { enabled = true },
  tokenizer_processor = { tokenizer_name = true, max_length = true, task_key = true, padding_side = true,
                          padding = true, truncation = true },
}
for name, known in pairs(kind.options or {}) do options[name] = known end

local function check_options(step, name, given_options)
  local known <const> = options[name] or {}
  for option in pairs(given_options) do
    if not known[option] then
      local all <const> = names(known)
      refuse(step .. "." .. tostring(option), "is no option of " .. name .. " that is run; "
             .. (all == "" and "it has none" or "known are " .. all))
    end
  end
end

local function steps_of(file, processor, known)
  if not processor then
    refuse(file .. "steps", "the file is not there: a folder of an older LeRobot has its statistics in "
           .. "model.safetensors; lerobot's processor/migrate_policy_normalization.py makes it")
  end
  if type(processor.steps) ~= "table" then refuse(file .. "steps", "must be a list") end
  local found = {}
  for i, s in ipairs(processor.steps) do
    local at = file .. "steps[" .. (i - 1) .. "]"
    local key = type(s) == "table" and s.registry_name and "registry_name" or "class"
    local name = type(s) == "table" and s[key]
    if type(name) ~= "string" then refuse(at, "does not name its step") end
    if not known[name] then
      refuse(at .. "." .. key, "step '" .. name .. "' is not known for " .. config.type .. "; known are "
             .. names(known))
    end
    if found[name] then refuse(at .. "." .. key, "step '" .. name .. "' stands twice") end
    local own <const> = s.config == nil and {} or s.config
    if type(own) ~= "table" then refuse(at .. ".config", "must be options by their names") end
    check_options(at .. ".config", name, own)
    found[name] = { at = at .. ".config", config = own }
  end
  return found
end
local before <const> = steps_of(BEFORE, given.preprocessor, before_known)
local after <const> = steps_of(AFTER, given.postprocessor, after_known)

local function need(steps, file, name)
  return steps[name] or refuse(file .. "steps", "there is no " .. name)
end

local function casts(step)
  local to = step and step.config.float_dtype
  if to ~= nil and to ~= "float32" then
    refuse(step.at .. ".float_dtype", "values are float32 here, not " .. tostring(to))
  end
end
casts(before.device_processor)
casts(after.device_processor)

-- What the robot calls a feature.
local called = {}
local rename <const> = before.rename_observations_processor
local map <const> = rename and rename.config.rename_map or {}
if type(map) ~= "table" then refuse(rename.at .. ".rename_map", "must be names by name") end
for old, new in pairs(map) do
  if type(old) ~= "string" or type(new) ~= "string" then refuse(rename.at .. ".rename_map", "must be names by name") end
  local at = rename.at .. '.rename_map["' .. old .. '"]'
  if called[new] then refuse(at, "'" .. called[new] .. "' becomes '" .. new .. "', too") end
  called[new] = old
end

-- --- normalisation: its modes are read by the engine, from the same step -------------------------

local normalizer <const>, unnormalizer <const> = need(before, BEFORE, packs), need(after, AFTER, unpacks)
local pictures <const> = enabled(normalizer.config.norm_map, "VISUAL")
if pictures and pictures ~= "IDENTITY" and not kind.normal then
  refuse(normalizer.at .. ".norm_map.VISUAL", tostring(pictures) .. ": " .. config.type
         .. " takes pictures as they are")
end

-- --- actions that are changes of the state -------------------------------------------------------

local relative <const>, absolute <const> = before.relative_actions_processor, after.absolute_actions_processor
local function is_on(step)
  local on = step and step.config.enabled
  if on ~= nil and type(on) ~= "boolean" then refuse(step.at .. ".enabled", "must be true or false") end
  return on or false
end
local is_relative <const>, is_absolute <const> = is_on(relative), is_on(absolute)
if is_relative and not is_absolute then
  refuse(relative.at .. ".enabled", "absolute_actions_processor of policy_postprocessor.json is not: "
         .. "differences from the state would leave as places")
elseif is_absolute and not is_relative then
  refuse(absolute.at .. ".enabled", "relative_actions_processor of policy_preprocessor.json is not: "
         .. "places would leave with the state added")
elseif config.use_relative_actions ~= nil and config.use_relative_actions ~= is_relative
  and not (kind.adds_state and kind.adds_state(unnormalizer)) then
  refuse(CONFIG .. "use_relative_actions", "is " .. tostring(config.use_relative_actions) .. ", but "
         .. "relative_actions_processor of policy_preprocessor.json " .. (is_relative and "is" or "is not")
         .. " enabled")
end
local columns <const> = is_relative and given.relative or {}
for _, column in ipairs(columns) do
  if column > (state or 0) then
    refuse(relative.at .. ".enabled", "column " .. column .. " of the actions is a change, but the state has "
           .. (state or 0) .. " entries")
  end
end

-- --- the prompt ----------------------------------------------------------------------------------

local prompt
if kind.prompt then
  need(before, BEFORE, kind.prompt.step)
  local tokenizer <const> = need(before, BEFORE, "tokenizer_processor")
  local side <const>, key <const> = tokenizer.config.padding_side, tokenizer.config.task_key
  if side ~= nil and side ~= "right" then refuse(tokenizer.at .. ".padding_side", "must be right") end
  if tokenizer.config.truncation == false then
    refuse(tokenizer.at .. ".truncation", "must be true: no more tokens than max_length are taken")
  end
  local n <const> = tokenizer.config.max_length
  if math.type(n) ~= "integer" or n < 1 then refuse(tokenizer.at .. ".max_length", "must be a number of tokens") end
  prompt = { input = type(key) == "string" and key or "task", template = kind.prompt.template,
             state = kind.prompt.state, max_tokens = n }
end

-- LeRobot pads the list of cameras with ones that no robot has.
local empty = {}
local blank <const> = integral(config.empty_cameras or 0)
if math.type(blank) ~= "integer" or blank < 0 or blank > 64 then
  refuse(CONFIG .. "empty_cameras", "must be a number of cameras, 0 .. 64")
end
for i = 1, blank do
  empty["observation.images.empty_camera_" .. (i - 1)] = true
end
local cameras = {}
for i, slot in ipairs(given.slots) do
  cameras[i] = { slot = slot, input = not empty[slot] and (called[slot] or slot) or nil }
end

local key <const> = called["observation.state"] or "observation.state"
local robot <const> = {
  name    = "lerobot",
  cameras = cameras,
  resize  = kind.resize,
  state   = { inputs = state and { { input = key, size = state } } or {} },
  actions = { size = action, ops = #columns > 0 and { { op = "add_state", at = columns } } or nil },
  norm    = { mode = "checkpoint" },
  prompt  = prompt,
  execute = wanted,
}
if kind.adapt then kind.adapt(robot, normalizer, unnormalizer, before) end
return robot
