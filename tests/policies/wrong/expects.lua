-- Every expectation here is wrong: policies.t wants each to fail, at its line.
local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen" }
t:frame { nreq = 2 }
t:expect { decode = { 5, 4 } }
t:expect { decode = { 5 } }
t:expect { paused = { 1 } }
t:expect { unshared = { 2 } }
t:expect { shed = { 1 } }
t:expect { reasons = { [1] = "old" } }
t:expect { group = { 1, 1 } }
t:expect { priority = { 1, 0 } }
t:expect { launches = { { 2, 1 } } }
t:expect { launches = { { 1 }, { 2 } } }
t:expect { snapped = 1 }
t:expect { depth = 3 }
t:expect { notes = { k = 5 } }
t:expect { skipped = { "see" } }
t:expect { partition = { talk = "rt" } }
t:expect { error = "anything" }
t:admit { }
t:expect { admitted = false }
t:expect { refused = "no kv slot" }
t:evict(1)
t:expect { victim = 1 }
