-- Steps between ALOHA's own units and those the models were trained with (openpi: adapt_to_pi).
--
-- Both arms have 6 joints and a gripper: entries 1..7 left, 8..14 right. Joints 2 and 3 of each arm
-- turn the other way. The state's gripper is how far the fingers are open (0..1, linear); the models
-- know the angle of its horn.
local grippers = { 7, 14 }
local flips    = { op = "multiply", at = { 2, 3, 9, 10 }, by = -1 }

return {
  state = {
    flips,
    -- Opening in metres, then the angle of a 22 mm horn on a 36 mm arm, then the model's range.
    { op = "unit_to_range", at = grippers, low = 0.01844, high = 0.05800 },
    { op = "linkage", at = grippers, horn = 0.022, arm = 0.036 },
    { op = "range_to_unit", at = grippers, low = 0.5476, high = 1.6296 },
  },
  actions = {
    flips,
    -- The model's zero angle to the follower's range of angles.
    { op = "shift", at = grippers, by = 0.5476 },
    { op = "range_to_unit", at = grippers, low = -0.6213, high = 1.4910 },
  },
  -- Joint actions are differences from the state, the grippers' are not.
  deltas = { op = "add_state", at = { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 } },
}
