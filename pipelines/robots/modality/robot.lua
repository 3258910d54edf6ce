-- A robot's description from a processor that was saved beside the model: processor_config.json, statistics.json and
-- embodiment_id.json, as NVIDIA's folders of GR00T N1.6 and N1.7 have them. Every field that changes numbers is looked
-- at, or refused by its name.
--
-- `given` = { config, processor, robots, statistics, embodiment, numbers }: config.json, processor_config.json and its
-- modality_configs, statistics.json, the robot's tag, and numbers of the model, when they are known.
local columns <const> = include "modality/columns.lua"

local FILE <const>, STATISTICS <const> = "processor_config.json: processor_kwargs", "statistics.json: "

-- A message that begins with "FILE: FIELD: " is shown with the place of that field.
local function refuse(field, message) error(FILE .. field .. ": " .. message, 0) end

local names <const> = include "pipeline/names.lua"

local own <const> = given.processor.processor_kwargs

-- By config.json's model_type: what the processor calls the vision-language model, templates of its chat, what is taken
-- where a file is silent, and whether pictures come out of the resize as the model takes them.
local kind <const> = ({
  Gr00tN1d6 = { type = "eagle", words = "eagle_words", as_it_is = "eagle_behind", boxes = true },
  Gr00tN1d7 = { type = "qwen", words = "qwen3_vl_words", as_it_is = "qwen3_vl", boxes = false, wide = 132,
                exact = true },
})[given.config.model_type or ""]
if not kind then
  error("config.json: model_type: must be Gr00tN1d6 or Gr00tN1d7, is " .. tostring(given.config.model_type), 0)
end

-- --- fields -------------------------------------------------------------------------------------

-- Fields that are read, and those that only training reads.
local read <const> = {
  "modality_configs", "use_albumentations", "letter_box_transform", "shortest_image_edge", "crop_fraction",
  "image_target_size", "image_crop_size", "formalize_language", "model_name", "model_type", "max_state_dim",
  "max_action_dim", "use_percentiles", "clip_outliers", "apply_sincos_state_encoding", "use_relative_action",
}
local training <const> = {
  "random_rotation_angle", "color_jitter_params", "extra_augmentation_config", "max_action_horizon",
  "state_dropout_prob", "transformers_loading_kwargs",
}
-- Options of later processors that are off in those of this model.
local off <const> = { "exclude_state", "use_mean_std", "use_tactile" }
local known = {}
for _, list in ipairs { read, training, off } do
  for _, name in ipairs(list) do known[name] = true end
end
for name in pairs(own) do
  if not known[name] then refuse("." .. tostring(name), "is no option that is run; known are " .. names(known)) end
end
for _, name in ipairs(off) do
  if own[name] then refuse("." .. name, "is not supported") end
end

local function flag(name, otherwise)
  local value = own[name]
  if value == nil then value = otherwise end
  if type(value) ~= "boolean" then refuse("." .. name, "must be true or false, is " .. tostring(value)) end
  return value
end

-- The processor pads to what the model reads; code that trains knows other sizes of its own.
for _, name in ipairs { "max_state_dim", "max_action_dim" } do
  local wide <const>, models <const> = own[name], given.config[name] or kind.wide
  if wide ~= nil and wide ~= models then
    refuse("." .. name, "is " .. tostring(wide) .. ", but that of config.json is " .. tostring(models))
  end
end
if (own.model_type or kind.type) ~= kind.type then
  refuse(".model_type", "must be " .. kind.type .. ", is " .. tostring(own.model_type))
end

-- --- pictures -----------------------------------------------------------------------------------

if not flag("use_albumentations", false) then
  refuse(".use_albumentations", "must be true: pictures are cut and resized by areas")
end
-- Published code of N1.6 pads every picture to a square; a folder of a later one says whether it does.
if not flag("letter_box_transform", kind.boxes) then
  refuse(".letter_box_transform", "must be true: without it the size of the model's pictures is that of the cameras, "
         .. "which the folder does not say")
end
local target <const>, cut <const> = own.image_target_size, own.image_crop_size
local function first(list) return type(list) == "table" and math.type(list[1]) and list[1] or nil end
local edge <const> = own.shortest_image_edge or first(target)
local middle <const> = own.crop_fraction or first(cut) and first(target) and first(cut) / first(target)
if math.type(edge) ~= "integer" or edge < 42 or edge > 4096 then
  refuse(".shortest_image_edge", "must be 42 to 4096 pixels, is " .. tostring(edge))
end
if not math.type(middle) or not (middle > 0 and middle <= 1) then
  refuse(".crop_fraction", "must be above 0 and at most 1, is " .. tostring(middle))
end

for _, size in ipairs(kind.exact and given.numbers and given.numbers.sizes or {}) do
  if size[1] ~= edge or size[2] ~= edge then
    refuse(own.shortest_image_edge ~= nil and ".shortest_image_edge" or ".image_target_size", "pictures of " .. edge
           .. " x " .. edge .. " are not run; the model takes " .. size[1] .. " x " .. size[2])
  end
end

-- --- the robot ----------------------------------------------------------------------------------

local tag = given.embodiment
if not tag and next(given.robots) and not next(given.robots, next(given.robots)) then tag = next(given.robots) end
if not tag then
  error("which robot? say --embodiment TAG, or embodiment = TAG in the model of a file; the checkpoint knows "
        .. names(given.robots), 0)
end
local modalities <const> = given.robots[tag]
if modalities == nil and next(given.robots) == nil then refuse(".modality_configs", "has no robot") end
if type(modalities) ~= "table" then
  error("embodiment '" .. tostring(tag) .. "': the checkpoint knows " .. names(given.robots), 0)
end
local AT <const> = '.modality_configs["' .. tag .. '"]'

-- The keys of one modality, read at the time of the observation alone.
local function modality(what, now)
  local m <const>, at <const> = modalities[what], AT .. "." .. what
  if type(m) ~= "table" then refuse(at, "must be there") end
  if m.exclude_state then refuse(at .. ".exclude_state", "is not supported") end
  local keys <const>, times <const> = m.modality_keys, m.delta_indices
  if not columns.is_list(keys) then refuse(at .. ".modality_keys", "must list names") end
  for _, key in ipairs(keys) do
    if type(key) ~= "string" then refuse(at .. ".modality_keys", "must list names") end
  end
  if not columns.is_list(times) then refuse(at .. ".delta_indices", "must list steps") end
  for i, time in ipairs(times) do
    if time ~= i - 1 then
      refuse(at .. ".delta_indices", "must count from 0 on: " .. tostring(time) .. " is not supported")
    end
  end
  if now and #times ~= 1 then
    refuse(at .. ".delta_indices", "observations of " .. #times .. " steps are not supported")
  end
  return m
end

local video <const>, state <const> = modality("video", true), modality("state", true)
local action <const>, language <const> = modality("action", false), modality("language", true)
if #language.modality_keys ~= 1 then refuse(AT .. ".language.modality_keys", "must be one") end

local all <const> = type(given.statistics) == "table" and given.statistics[tag]
if type(all) ~= "table" then error(STATISTICS .. tag .. ": must be there: state and actions are normalised", 0) end

local options <const> = {
  percentiles = flag("use_percentiles", false), clip = flag("clip_outliers", true),
  sincos = flag("apply_sincos_state_encoding", false), relative = flag("use_relative_action", false),
}
local at <const> = { fields = FILE .. AT, statistics = STATISTICS .. '["' .. tag .. '"]' }
local measured <const> = columns.state(state, all, options, at)
local sent <const> = columns.actions(action, all, options, at, measured)

local cameras = {}
for i, key in ipairs(video.modality_keys) do cameras[i] = { slot = "video." .. key, input = "video." .. key } end
if #cameras > 8 then refuse(AT .. ".video.modality_keys", "at most 8 pictures are read, not " .. #cameras) end

return {
  name    = tag,
  cameras = cameras,
  resize  = "letterbox-area",
  edge    = edge,
  middle  = middle,
  state   = { inputs = measured.inputs, ops = measured.ops, normalised = measured.normalised },
  actions = { size = sent.size, ops = sent.ops, relative = sent.changes, max_rows = #action.delta_indices,
              limits = sent.limits, outputs = sent.outputs },
  norm    = { mode = "none" },
  prompt  = { input = language.modality_keys[1],
              template = (flag("formalize_language", true) and kind.words or kind.as_it_is) .. #cameras },
}
