-- pi0: the task with a newline; the state is the first row of the suffix. Older configurations
-- know changes for one robot.
return {
  arch   = "pi0",
  guided = true,
  prompt = { step = "pi0_new_line_processor", template = "as_it_is" },
  resize = "lerobot_torch",
  off    = { "adapt_to_pi_aloha", "use_delta_joint_actions_aloha" },
}
