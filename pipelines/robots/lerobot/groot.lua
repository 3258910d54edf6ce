-- LeRobot's type groot is GR00T N1.5 in its releases 0.4 and 0.5, and N1.7 from 0.6 on: the names of the processors'
-- steps tell which.
local later <const> = {
  groot_n1_7_pack_inputs_v1 = true, groot_n1_7_vlm_encode_v1 = true, groot_action_unpack_unnormalize_v2 = true,
  groot_n1_7_action_decode_v1 = true,
}
for _, processor in pairs { given.preprocessor, given.postprocessor } do
  local list = type(processor) == "table" and processor.steps
  for _, step in ipairs(type(list) == "table" and list or {}) do
    local name = type(step) == "table" and step.registry_name
    if name and later[name] then return include "lerobot/groot_n17.lua" end
  end
end
return include "lerobot/groot_n15.lua"
