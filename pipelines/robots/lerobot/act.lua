-- ACT: no text; pictures in the sizes of their cameras, normalised as the processor says.
return {
  arch   = "act",
  resize = "none",
  normal = true,
  inputs = { "observation.environment_state" },
  adapt  = function(robot)
    local config <const> = given.config
    local env <const> = config.input_features["observation.environment_state"]
    if env then
      robot.state.inputs[#robot.state.inputs + 1] = { input = "observation.environment_state", size = env.shape[1] }
    end
    local coefficient <const> = config.temporal_ensemble_coeff
    if coefficient ~= nil and math.type(coefficient) == nil then
      error("config.json: temporal_ensemble_coeff: must be a number", 0)
    end
    if coefficient and config.n_action_steps ~= 1 then
      error("config.json: n_action_steps: temporal_ensemble_coeff needs 1, a chunk for every action", 0)
    end
    robot.actions.ensemble = coefficient
  end,
}
