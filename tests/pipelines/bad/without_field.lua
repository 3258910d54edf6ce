-- Fields that an overlay leaves out: one under another's name, one that the base has not.
return extend("good.lua", {
  frame = without "capture",
  nodes = { action { name = "act", prefix = without "prefix" } },
})
