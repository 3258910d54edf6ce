-- A text that is begun anew in each frame, of which a frame makes a third.
return extend("good.lua", { nodes = { decode { name = "talk", spawn = every(1), supersede = true, max_tokens = 12 } },
  capture = capture { k = { 2, 4 } } })
