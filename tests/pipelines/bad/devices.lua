-- The model names a device that there is none of; else all is right.
return extend("good.lua", { model = model { where = "cuda:0,gpu" } })
