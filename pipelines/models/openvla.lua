-- OpenVLA; with a head and a projector of the state beside it, OpenVLA-OFT.
return include("common/openvla_family.lua") { name = "openvla" }
