-- Activations in 8 bits, but no weights in 8 bits; else all is right.
return extend("good.lua", { model = model { quantize = "int4", round = "int8" } })
