-- A robot as a LeRobot checkpoint describes it: its features, processors and statistics.
--
-- `given` = { config, preprocessor, postprocessor, slots }: config.json, policy_preprocessor.json,
-- policy_postprocessor.json, and the image features in config.json's order. Request keys are
-- LeRobot's: observation.images.<name>, observation.state, task.

local function step(processor, name)
  for _, s in ipairs(processor.steps) do
    if s.registry_name == name then return s end
  end
end

local config, before, after = given.config, given.preprocessor, given.postprocessor
if not config or not before or not after then
  error "this robot is read from a LeRobot checkpoint with its pre- and postprocessor"
end
local normalizer   = step(before, "normalizer_processor")
local unnormalizer = step(after, "unnormalizer_processor")
local tokenizer    = step(before, "tokenizer_processor")
local relative     = step(before, "relative_actions_processor")
local with_state   = step(before, "pi05_prepare_state_tokenizer_processor_step")
local newline      = step(before, "pi0_new_line_processor")

if not normalizer or not unnormalizer then
  error "the processors have no (un)normalizer step"
end
if not with_state and not newline then
  error "the preprocessor makes its prompt in a way that is not known here"
end
if relative and relative.config.enabled then
  error "relative actions are not supported: their mask is not in the checkpoint"
end

local function vector(features, name)
  local f = features and features[name]
  return f and f.shape[1]
end

-- LeRobot pads the list of cameras with ones that no robot has.
local cameras = {}
for i, slot in ipairs(given.slots) do
  local is_empty = config.empty_cameras and i > #given.slots - config.empty_cameras
  cameras[i] = { slot = slot, input = not is_empty and slot or nil }
end

local state  = vector(config.input_features, "observation.state")
local action = vector(config.output_features, "action")
             or error "config.json does not say how long an action is"

return {
  name    = "lerobot",
  cameras = cameras,
  resize  = "lerobot_torch",
  state   = { inputs = state and { { input = "observation.state", size = state } } or {} },
  actions = { size = action },
  norm    = { mode = "checkpoint" },
  prompt  = {
    input      = "task",
    template   = with_state and "with_state" or "as_it_is",
    state      = with_state ~= nil,
    max_tokens = tokenizer and tokenizer.config.max_length or nil,
  },
  execute = config.n_action_steps,
}
