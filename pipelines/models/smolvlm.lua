-- SmolVLM and SmolVLM2 (`smolvlm`, `idefics3`): a picture tower whose squares of patches become rows of a Llama
-- text, where the prompt has <image>, once a picture. A picture is one square frame: it is not split.
-- `given` = { config, generation, preprocessor, shapes, slots, size, arch }, as of decoder_family.lua.
local read <const> = include("common/configuration.lua")
local shared <const> = include("common/smolvlm_tower.lua")
local count <const> = read.count

local M <const> = "model."

local c = given.config
if c and c.model_type ~= "smolvlm" and c.model_type ~= "idefics3" or given.shapes and not c then return false end
if not c then
  if given.arch ~= "smolvlm" then return false end
  c = shared.sizes[given.size] or error("size must be full, small or tiny", 0)
  c.image_token_id = c.image_token_id or c.text_config.vocab_size - 1
  c.text_config.rope_theta = 100000.0
end

-- The side that the processor makes of a picture that it does not split; without its file that of the tower.
local function picture_side(vision)
  local most = (given.preprocessor or {}).max_image_size
  if type(most) == "table" and most.longest_edge ~= nil then return count(most, "longest_edge") end
  return count(vision, "image_size", 224)
end

-- The text's tie is the top level's, whose default is not to.
local text <const>, vision <const> = {}, read.part(c, "vision_config")
for key, value in pairs(read.part(c, "text_config")) do text[key] = value end
read.word(text, "model_type", { "llama" }, "llama")
text.tie_word_embeddings = read.flag(c, "tie_word_embeddings", false)
local picture = c.image_token_id
if picture == nil then picture = 128257 end

local model <const> = include("common/llama_family.lua") {
  name = "smolvlm", config = text, prefix = M .. "text_model.",
}
model.slots = given.slots or { "image1", "image2", "image3", "image4", "image5", "image6", "image7", "image8" }
model.text.picture = read.token(c, "image_token_id", model.text.vocab, picture)
model.text.bos = -1 -- the chat's first token is one that the template spells
local side <const>, scale <const> = picture_side(vision), count(c, "scale_factor", 2)
local patches <const> = side // count(vision, "patch_size", 32)
if patches % scale ~= 0 or scale > 16 then
  read.refuse(c, "scale_factor", "squares of " .. scale .. " x " .. scale .. " must divide a side of " .. patches
              .. " patches, and be of 16 at most")
end
model.vision = {
  towers = { shared.tower(M, vision, side) },
  project = shared.project(M, scale, model.text.width),
}
return model
