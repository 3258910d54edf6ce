-- Mistakes of an overlay are shown where they were written.
return extend("good.lua", {
  frame = { period_ms = 33, clok = "internal" },
  nodes = {
    action { name = "act", steps = 0 },
    without "nobody",
  },
})
