-- The text worker of the parallel baseline: language from a prefill of its own, no actions. For
-- `experiments oxygen`, not for robots.
return extend("pi05_libero.lua", { name = "text", nodes = { without "act" } })
