-- The text worker of the parallel baseline on padded inputs: three pictures. For
-- `experiments oxygen`, not for robots.
return extend("pi05_aloha.lua", { name = "text_padded", nodes = { without "act" } })
