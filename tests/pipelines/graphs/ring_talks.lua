-- Questions on the newest picture of a ring, one every three frames.
return extend("graphs/g20_question_on_a_ring.lua", {
  name  = "ring_talks",
  nodes = { decode { name = "talk", spawn = every(3) } },
})
