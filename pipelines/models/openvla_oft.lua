-- OpenVLA-OFT by name: its head (action_head.safetensors) stands beside the model, and what projects the
-- robot's state (proprio_projector.safetensors) where it was trained with one.
return include("common/openvla_family.lua") { name = "openvla_oft", by_name = true, head = true }
