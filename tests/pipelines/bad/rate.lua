-- A rate beyond what counts frames.
return extend("good.lua", { nodes = { prefill { name = "see", spawn = every(2147483648) } } })
