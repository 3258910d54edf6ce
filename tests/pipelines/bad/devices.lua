-- The model names a device of its own, which this release does not follow; else all is right.
return extend("good.lua", { model = model { where = "cpu" } })
