-- Actions of GR00T N1.7 by groups of columns, as a LeRobot folder has them: modality_config and raw_stats of the two
-- steps, { at, config } each. A group that is relative is added to the state's group of its name.
local columns <const> = include "modality/columns.lua"
local fields <const> = include "lerobot/groot_fields.lua"
local refuse <const>, flag <const>, single <const> = fields.refuse, fields.flag, fields.single

-- Words of an action's configuration, in either case.
local words <const> = {
  RELATIVE = "RELATIVE", relative = "RELATIVE", ABSOLUTE = "ABSOLUTE", absolute = "ABSOLUTE", DELTA = "DELTA",
  delta = "DELTA", NON_EEF = "NON_EEF", non_eef = "NON_EEF", EEF = "EEF", eef = "EEF", DEFAULT = "DEFAULT",
  default = "DEFAULT",
}

-- One modality of a step, whose keys are names that stand once.
local function modality(step, what)
  local all <const> = step.config.modality_config
  local m <const>, at <const> = type(all) == "table" and all[what], "modality_config." .. what
  if type(m) ~= "table" then refuse(step, at, "must be there: actions are made of groups") end
  if not columns.is_list(m.modality_keys) then refuse(step, at .. ".modality_keys", "must list names") end
  local seen <const> = {}
  for _, key in ipairs(m.modality_keys) do
    if type(key) ~= "string" then refuse(step, at .. ".modality_keys", "must list names") end
    if seen[key] then refuse(step, at .. ".modality_keys", "'" .. key .. "' stands twice") end
    seen[key] = true
  end
  for _, name in ipairs { "mean_std_embedding_keys", "sin_cos_embedding_keys" } do
    if type(m[name]) == "table" and next(m[name]) ~= nil then
      refuse(step, at .. "." .. name, "is not supported: LeRobot goes from min to max")
    end
  end
  return m
end

local function statistics(step)
  local all <const> = step.config.raw_stats
  if type(all) ~= "table" then refuse(step, "raw_stats", "must be there: actions are made of groups") end
  return all
end

-- The same with all numbers in float32, as LeRobot takes them.
local function singles(value)
  if math.type(value) then return single(value + 0.0) end
  if type(value) ~= "table" then return value end
  local out <const> = {}
  for key, one in pairs(value) do out[key] = singles(one) end
  return out
end

-- Where the state's groups begin.
local function measured_of(pack, size)
  local first, at = {}, 0
  local all <const> = statistics(pack).state
  for _, key in ipairs(modality(pack, "state").modality_keys) do
    local own <const> = type(all) == "table" and all[key]
    local list <const> = type(own) == "table" and (own.mean or own.min or own.q01)
    if not columns.is_list(list) then refuse(pack, "raw_stats.state." .. key, "must list numbers of the group") end
    first[key] = { at = at, size = #list }
    at = at + #list
  end
  if at > size then
    refuse(pack, "modality_config.state.modality_keys", "the groups have " .. at .. " entries, the state " .. size)
  end
  return first
end

-- The actions' modality with its words in one case.
local function told(after)
  local m <const>, at <const> = modality(after, "action"), "modality_config.action"
  if not columns.is_list(m.delta_indices) then refuse(after, at .. ".delta_indices", "must list steps") end
  for _, one in ipairs(m.delta_indices) do
    if math.type(one) ~= "integer" then refuse(after, at .. ".delta_indices", "must list steps") end
  end
  if not columns.is_list(m.action_configs) then
    refuse(after, at .. ".action_configs", "must have one for each of " .. #m.modality_keys .. " modality_keys")
  end
  local configs <const> = {}
  for i, c in ipairs(m.action_configs) do
    if type(c) ~= "table" then
      refuse(after, at .. ".action_configs[" .. (i - 1) .. "]", "must be fields of one key")
    end
    configs[i] = { rep = words[c.rep or ""] or c.rep, type = words[c.type or ""] or c.type,
                   format = words[c.format or ""] or c.format, state_key = c.state_key }
  end
  return { modality_keys = m.modality_keys, delta_indices = m.delta_indices, action_configs = configs }
end

-- The column of the group `gripper`.
local function gripper_of(after, outputs)
  local at = 0
  for _, group in ipairs(outputs) do
    if group.name == "gripper" and group.size == 1 then return at + 1 end
    at = at + group.size
  end
  refuse(after, "modality_config.action.modality_keys", "the action of LIBERO needs a group 'gripper' of one column")
end

-- Writes robot.actions. turn: what is done to the gripper's column before the step behind adds the state; or nil.
return function(robot, pack, after, turn)
  local options <const> = { percentiles = flag(after, "use_percentiles", false),
                            relative = flag(after, "use_relative_action", false) }
  if options.relative and robot.actions.ops then
    refuse(after, "use_relative_action", "absolute_actions_processor adds the state, too")
  end
  local action <const>, changes <const> = told(after), robot.actions.ops or {}
  local measured <const> = { first = options.relative and measured_of(pack, robot.state.inputs[1].size) or {} }
  local made <const> = columns.actions(action, singles(statistics(after)), options, {
    fields = after.at .. ".modality_config", statistics = after.at .. ".raw_stats" }, measured)

  local dim <const>, size <const> = after.config.env_action_dim or 0, robot.actions.size
  if math.type(dim) ~= "integer" or dim < 0 then refuse(after, "env_action_dim", "must be a number of columns") end
  if dim > 0 and dim < made.size then
    refuse(after, "env_action_dim", "the groups make " .. made.size .. " columns, of which the last are cut off: that "
           .. "is not supported")
  elseif made.size ~= size then
    refuse(after, "modality_config.action.modality_keys", "the groups make " .. made.size .. " columns, the action of "
           .. "config.json has " .. size .. " entries")
  end
  robot.actions = { size = size, ops = made.ops, relative = made.changes, max_rows = #action.delta_indices,
                    limits = made.limits }
  if turn then turn(robot, gripper_of(after, made.outputs)) end
  for _, op in ipairs(changes) do
    made.ops[#made.ops + 1] = op
    for _, i in ipairs(op.at) do made.limits.min[i], made.limits.max[i] = false, false end
  end
end
