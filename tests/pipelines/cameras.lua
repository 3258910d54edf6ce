return { "left", "right" }
