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
    if config.temporal_ensemble_coeff and config.n_action_steps ~= 1 then
      error("config.json: n_action_steps: temporal_ensemble_coeff needs 1, a chunk for every action", 0)
    end
    robot.actions.ensemble = config.temporal_ensemble_coeff
  end,
}
