-- pi0: the time is mixed into each action row; the robot's state is the first row of the suffix.
return include("common/pi_family.lua") {
  name = "pi0", type = "pi0", adaptive = false, max_tokens = 48, marker = "state_proj.weight",
}
