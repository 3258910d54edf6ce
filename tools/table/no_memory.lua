-- The table's pipeline with a planner that remembers nothing: each answer is of the goal alone.
return extend("table.lua", { name = "table_no_memory",
  nodes = { without "keep_said", without "keep_did", without "keep_seen",
            without "log_said", without "log_did", without "log_seen" } })
