-- pi0.5 on ALOHA: one observation prefill per control frame, a flow-matching
-- action expert with a hard deadline, and free-running language decoding that
-- is batched across frames.  Gemma-2B prefix: 18 layers, 1 KV head x 256.
local CAMS <const>       = { "cam_high", "cam_left_wrist", "cam_right_wrist" }
local TXT_TOKENS <const> = 200
local OBS_TOKENS <const> = #CAMS * 256 + TXT_TOKENS        -- 968

local function rgb224(name, slot)          -- reuse = an ordinary function
  return image { name = name, h = 224, w = 224, dtype = "u8", slot = slot, optional = true }
end

return pipeline {
  name   = "pi05_aloha",
  schema = 1,
  model  = model { arch = "pi05", weights = "pi05_base", dtype = "bf16", round = "mixed" },
  robot  = "robots/aloha.lua",

  frame  = frame { period_ms = 50, clock = "external", overrun = "skip_next" },

  inputs = {
    image { name = "cam_high", h = 224, w = 224, dtype = "u8", slot = "base_0_rgb" },
    rgb224("cam_left_wrist",  "left_wrist_0_rgb"),      -- a camera that is not sent is masked
    rgb224("cam_right_wrist", "right_wrist_0_rgb"),
    tensor { name = "state",  shape = { 14 }, dtype = "f32" },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 64, slots = 8,
                  share_prefix = "obs" },          -- copy-on-write fork of obs
    buffer      { name = "chunk", shape = { 50, 32 }, dtype = "f32" },
  },

  nodes = {
    prefill { name = "see",  reads = { "cam_high", "cam_left_wrist", "cam_right_wrist",
                                       "state", "prompt" },
              writes = "obs" },
    action  { name = "act",  kv = "obs", steps = 10, out = "chunk", partition = "rt",
              deadline = hard { ms = 45, on_miss = "hold_last" } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 30,
              out = stream "narration", partition = "bg",
              deadline = soft { ms = 1500, on_miss = "shed" } },
  },

  partitions = { sm { name = "rt", share = 0.75 },
                 sm { name = "bg", share = 0.25 } },

  -- The decision lattice: the only shapes a policy may pick, all captured at load.
  -- k >= 4 keeps at most ceil(30/4) = 8 requests in flight, i.e. never more than slots.
  -- Batches of 1, 3, 5 and 8: no row count pays more than 1.5 times its work.
  capture = capture { batch = { 1, 3, 5, 8 }, k = { 4, 5, 8, 30 }, on_miss = "error" },

  memory  = memory { device = "9GiB" },
  policy  = use { name = "oxygen", params = { k = 5 } },
  guard   = guard { fallback = "default", soft_us = 100, hard_us = 500,
                    heap = "512KiB", strikes = 3, window_frames = 1000 },
}
