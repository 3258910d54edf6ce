-- pi0.5: the time of the flow conditions every norm of the expert; the robot's state is text.
return include("common/pi_family.lua") {
  name = "pi05", type = "pi05", adaptive = true, max_tokens = 200, marker = "time_mlp_in.weight",
}
