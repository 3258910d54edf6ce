-- oxygen: every request k steps, one batch, one shared prefill.
local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen" }
t:frame { nreq = 8 }
t:expect { decode = { 5, 5, 5, 5, 5, 5, 5, 5 }, launches = { { 1, 2, 3, 4, 5, 6, 7, 8 } },
           unshared = {}, paused = {}, shed = {}, snapped = 0, notes = {} }
t:frame { nreq = 2, params = { k = 7 } }
t:expect { decode = { 5, 5 }, snapped = 2 }
t:frame { nreq = 2, params = { k = 3 } }
t:expect { paused = { 1, 2 } }

-- A row with less left stays in the launch: k is not cut.
t = tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen", params = { k = 8 } }
t:frame { requests = { { done = 29, age_frames = 4 }, { id = 1 } } }
t:expect { decode = { 8, 8 }, launches = { { 1, 2 } } }
