-- Partitions that are more than the device together.
return extend("good.lua", { partitions = { sm { name = "bg", share = 0.5 } } })
