-- Stop texts that are none.
return extend("good.lua", { nodes = { decode { name = "talk", stop = { "end", 5 } } } })
