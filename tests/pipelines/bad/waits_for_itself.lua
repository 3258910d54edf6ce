-- A node that waits for itself.
return extend("good.lua", { nodes = { action { name = "act", after = "act" } } })
