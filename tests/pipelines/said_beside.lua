-- The arm of said_first.lua, whose second prompt has the instruction behind what it has said.
return extend("said_first.lua", { name = "said_beside",
  nodes = { prefill { name = "look", reads = { "cam", "state", "talk", "prompt" } } } })
