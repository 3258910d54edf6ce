-- pi0.5 fine-tuned to say sub-tasks with causal text, as the public forks do: same tensors, other mask.
return include("common/pi_family.lua") {
  name = "pi05_causal", type = "pi05", adaptive = true, max_tokens = 200, marker = "time_mlp_in.weight",
  mask = "causal", by_name = true,
}
