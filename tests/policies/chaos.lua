-- chaos: legal whatever it draws, and the same for the same seed and frame.
local function run(seed)
  local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "chaos", params = { seed = seed } }
  for _ = 1, 50 do
    t:frame { nreq = 8 }
    t:expect { shed = {} }
  end
  return t
end
run(1)
run(2)
run(999999)

local a = tectum.test { pipeline = "pi05_aloha.lua", policy = "chaos", params = { seed = 3 } }
a:frame { nreq = 4, index = 17 }
a:expect { decode = { 8, 8, 0, 8 } }
local b = tectum.test { pipeline = "pi05_aloha.lua", policy = "chaos", params = { seed = 3 } }
b:frame { nreq = 4, index = 17 }
b:expect { decode = { 8, 8, 0, 8 } }
