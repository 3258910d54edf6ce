-- For measurements: pi0.5 on LIBERO with its lanes in two halves. No node asks for the second one,
-- so a policy has the whole device until it moves language there with D:partition, as `parallel`
-- does: tectum bench pipelines/pi05_libero_parallel.lua --policy parallel,isolated,oxygen
return extend("pi05_libero.lua", {
  name       = "pi05_libero_parallel",
  nodes      = { action { name = "act", partition = "rt" } },
  partitions = { sm { name = "rt", share = 0.5 },
                 sm { name = "bg", share = 0.5 } },
})
