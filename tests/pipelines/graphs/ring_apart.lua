-- A ring whose prefills are launches of their own: its decode node says no pack_with.
return extend("graphs/g20_question_on_a_ring.lua", {
  name  = "ring_apart",
  nodes = { decode { name = "advance", pack_with = without "pack_with" }, decode { name = "talk", spawn = every(4) } },
})
