-- pi0.5: task and state are one text. A state that is projected, and pictures of earlier frames, are options
-- of its later configurations.
return {
  arch   = "pi05",
  guided = true,
  prompt = { step = "pi05_prepare_state_tokenizer_processor_step", template = "with_state", state = true },
  resize = "lerobot_torch",
  off    = { "use_visual_memory", "use_proprioceptive_memory" },
}
