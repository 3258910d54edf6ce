-- OpenVLA-OFT without a head: a chunk of actions as the next tokens of one bidirectional forward. Its
-- files do not say so: it is asked for by name.
return include("common/openvla_family.lua") { name = "openvla_parallel", by_name = true, parallel = true }
